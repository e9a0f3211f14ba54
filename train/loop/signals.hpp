// SIGINT, SIGTERM and SIGUSR1 as a request to save and stop, and the thread that alone receives signals meanwhile.
#pragma once

#include <csignal>
#include <future>
#include <thread>

namespace capstan {

/// While it lives, these signals only set a flag; a second SIGINT ends the process at once. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The signal that arrived; 0 for none.
  static int received();

 private:
  struct sigaction previous_[3];
};

/// While it lives, signals sent to the process run their handlers on a thread of its own: the calling thread, those of
/// parallel_for and those started from now on see none. Some float products of oneDNN before 3.11.2 work with the stack
/// pointer in the middle of the heap, and the frame of a handler that interrupts them destroys whatever lies there
/// (github.com/uxlfoundation/oneDNN/issues/4845). A signal sent to one of these threads (pthread_kill, raise) waits.
class SignalThread {
 public:
  /// Throws std::system_error when no thread can be started.
  SignalThread();
  ~SignalThread();
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

 private:
  sigset_t before_;
  std::promise<void> done_;
  std::thread thread_;
};

}  // namespace capstan
