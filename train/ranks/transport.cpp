// The thread of a Deadline: it ends the process with a message where a call of MPI does not return in time, since such
// a call cannot be broken off. launch.cpp sets one for the start of MPI, Communicator for its end.
#include "train/ranks/transport.hpp"

#include <signal.h>
#include <unistd.h>

#include <chrono>

namespace capstan {

Deadline::Deadline(double seconds, std::string message)
    : thread_([this, seconds, text = "error: " + std::move(message) + "\n"] {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, nullptr);  // signals are for the other threads
        std::unique_lock lock(mutex_);
        if (changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return reached_; })) return;
        // The process ends whether the message could be written or not; compilers want its result to be used.
        if (::write(STDERR_FILENO, text.data(), text.size()) >= 0) ::_exit(1);
        ::_exit(1);
      }) {}

Deadline::~Deadline() {
  {
    const std::lock_guard lock(mutex_);
    reached_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

}  // namespace capstan
