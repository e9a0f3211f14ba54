// The number of threads while a loop with work space for each of them runs.
#pragma once

#include "core/base/no_copy.hpp"

namespace capstan {

/// While it lives, threads() stays what it is on the calling thread, even where another thread calls set_threads().
class FixedThreads : NoCopy {
 public:
  FixedThreads();
  ~FixedThreads();

 private:
  int before_;
};

}  // namespace capstan
