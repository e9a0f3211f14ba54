// A number of threads for a part of a test.
#pragma once

#include "core/machine/parallel.hpp"

namespace capstan {

/// Uses `count` threads while it lives.
class Threads {
 public:
  explicit Threads(int count) : before_(threads()) { set_threads(count); }
  ~Threads() { set_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

}  // namespace capstan
