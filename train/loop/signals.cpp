// Handlers note a signal in lock-free atomics, which is all that a handler may do; the loop asks for it between steps.
// A thread of its own receives the signals where they must not interrupt products: tests/train/test_signals.cpp.
#include "train/loop/signals.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <ctime>

#include "core/machine/parallel.hpp"

namespace capstan {
namespace {

constexpr int watched[] = {SIGINT, SIGTERM, SIGUSR1};
std::atomic<int> received_signal = 0;
std::atomic<bool> second_ends = true;
std::atomic<int> watchers = 0;         // StopSignals that live
std::atomic<int> ending_code = 0;      // of EndingSignals
std::atomic<int64_t> received_at = 0;  // nanoseconds
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free);  // a handler writes

int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// A handler: it may only touch the atomics above and call what is safe in a handler.
extern "C" void note_signal(int number) {
  if (number == SIGINT && received_signal == SIGINT && second_ends) {
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
    return;
  }
  if (received_signal == 0) received_at = now();
  received_signal = number;
}

/// A handler: it may only call what is safe in a handler.
extern "C" void end_process(int) {
  constexpr char line[] = "interrupted by a signal while data were read; the same command reads them again\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, sizeof line - 1);
  _exit(ending_code);
}

void handle_watched(void (*handler)(int), struct sigaction* previous) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (int i = 0; i < 3; ++i) sigaction(watched[i], &action, &previous[i]);
}

void restore_watched(const struct sigaction* previous) {
  for (int i = 0; i < 3; ++i) sigaction(watched[i], &previous[i], nullptr);
}

/// All signals but those that a thread raises itself by a fault.
sigset_t signals_from_outside() {
  sigset_t set;
  sigfillset(&set);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPIPE}) sigdelset(&set, own);
  return set;
}

/// Sets the mask of the calling thread and of those of parallel_for.
void mask_signals(const sigset_t& mask) {
  parallel_for(threads(), 1, [&](int64_t, int64_t) { pthread_sigmask(SIG_SETMASK, &mask, nullptr); });
}

}  // namespace

StopSignals::StopSignals() {
  if (watchers++ == 0) received_signal = 0;
  handle_watched(note_signal, previous_);
}

StopSignals::~StopSignals() {
  restore_watched(previous_);
  --watchers;
}

EndingSignals::EndingSignals(int exit_code) {
  ending_code = exit_code;
  handle_watched(end_process, previous_);
}

EndingSignals::~EndingSignals() { restore_watched(previous_); }

int StopSignals::received(double seconds_ago) {
  const int signal = received_signal;
  return signal != 0 && (seconds_ago <= 0 || static_cast<double>(now() - received_at) >= 1e9 * seconds_ago) ? signal
                                                                                                            : 0;
}

void StopSignals::request(int signal) {
  int none = 0;
  if (watchers > 0 && received_signal.compare_exchange_strong(none, signal)) received_at = now();
}

void StopSignals::outlive_second() { second_ends = false; }

std::string interruption(int signal) {
  const char* const name = sigabbrev_np(signal);
  return fmt::format("interrupted by SIG{}", name != nullptr ? name : "?");
}

SignalThread::SignalThread() {
  const sigset_t outside = signals_from_outside();
  pthread_sigmask(SIG_BLOCK, &outside, &before_);
  try {
    thread_ = std::thread([this] {
      pthread_sigmask(SIG_SETMASK, &before_, nullptr);
      done_.get_future().wait();
    });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    throw;
  }
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  mask_signals(mask);
}

SignalThread::~SignalThread() {
  done_.set_value();
  thread_.join();
  mask_signals(before_);
}

}  // namespace capstan
