// SIGINT, SIGTERM and SIGUSR1 as a request to save and stop, and the only thread that receives signals meanwhile. For
// sessions, sweeps and autotune; the Python package hands its own signals on. tests/train/test_signals.cpp,
// test_loop.cpp ("a signal saves and stops", "a second SIGINT") and tests/cli/training/test_interruption.cpp.
#pragma once

#include <csignal>
#include <future>
#include <string>
#include <thread>

#include "core/base/no_copy.hpp"

namespace capstan {

/// During its lifetime SIGINT, SIGTERM and SIGUSR1 only set a flag; a second SIGINT ends the process immediately,
/// unless outlive_second(). One that begins during the lifetime of another, in the process or the one that it was
/// forked from, takes over its flag, so that no signal is lost between two pieces of work.
class StopSignals : NoCopy {
 public:
  StopSignals();
  ~StopSignals();

  /// The signal that was received, if the first one came at least so many seconds ago; 0 for none. Any thread may ask.
  static int received(double seconds_ago = 0);
  /// Acts as if the signal had been received; does nothing where there is no StopSignals.
  static void request(int signal);
  /// From here on a second SIGINT does nothing, for a process that does more than train.
  static void outlive_second();

 private:
  struct sigaction previous_[3];
};

/// During its lifetime, and outside that of any StopSignals, SIGINT, SIGTERM and SIGUSR1 end the process at once, with
/// this exit code and a line on standard error. For a program that has nothing to save yet.
class EndingSignals : NoCopy {
 public:
  explicit EndingSignals(int exit_code);
  ~EndingSignals();

 private:
  struct sigaction previous_[3];
};

/// A signal in words: "interrupted by SIGTERM".
std::string interruption(int signal);

/// During its lifetime, handlers of signals sent to the process run on a separate thread: they are blocked in the
/// calling thread, in those of parallel_for and in those started later. Some float products of oneDNN before 3.11.2 run
/// with the stack pointer inside the heap, and the frame of a handler that interrupts them overwrites the data there
/// (github.com/uxlfoundation/oneDNN/issues/4845). A signal sent to one of the blocked threads
/// (pthread_kill, raise) stays pending.
class SignalThread : NoCopy {
 public:
  /// Throws std::system_error when no thread can be started.
  SignalThread();
  ~SignalThread();

 private:
  sigset_t before_;
  std::promise<void> done_;
  std::thread thread_;
};

}  // namespace capstan
