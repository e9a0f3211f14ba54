// A limit for calls of other libraries that cannot be interrupted.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "core/base/no_copy.hpp"

namespace capstan {

/// Ends the process with a message and exit code 1 unless it is destroyed within `seconds`: where a process of a job
/// was killed while all were starting or ending, MPI may wait for it for ever.
class Deadline : NoCopy {
 public:
  Deadline(double seconds, std::string message);
  ~Deadline();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reached_ = false;  // the end of what was limited
  std::thread thread_;
};

}  // namespace capstan
