// The threads that compute for Python.
//
// Some float products of oneDNN before 3.11.2 run with the stack pointer inside the heap (train/loop/signals.hpp): a
// handler that interrupts them overwrites data. A module cannot know what handlers its process has, so that nothing
// with products is computed on a thread of Python's: it waits without the interpreter's lock, and runs Python's
// handlers meanwhile.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>

#include "core/machine/parallel.hpp"

namespace capstan::python {

namespace nb = nanobind;

/// Whether the caller wants a computation to end early.
class Cancel {
 public:
  void request() { requested_ = true; }
  bool requested() const { return requested_; }

 private:
  std::atomic<bool> requested_ = false;
};

/// A piece of work on one of the computing threads; it stops (core/base/stop.hpp) when it is cancelled.
class Job {
 public:
  explicit Job(std::function<void(const Cancel&)> work) : work_(std::move(work)) {}

  void run();
  /// Wakes who waits.
  void end();
  bool wait_for(std::chrono::milliseconds time);
  /// Waits without a limit of time.
  void wait();
  Cancel& cancel() { return cancel_; }
  /// What the work threw; after its end.
  std::exception_ptr error() const { return error_; }

 private:
  std::function<void(const Cancel&)> work_;
  Cancel cancel_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;
  std::exception_ptr error_;
};

/// Starts `work` on a computing thread: an idle one, else a new one. All signals are blocked there and in the threads
/// that OpenMP starts from it. Throws Error in a process that was forked while another thread computed.
std::shared_ptr<Job> start(std::function<void(const Cancel&)> work);

/// To be called before and after a fork, the latter in the child: its computing threads are new ones.
void before_fork();
void after_fork_in_child();

/// Waits for a job, with the interpreter's lock released and Python's signal handlers run. Where one of them raises, as
/// for Ctrl-C, the job is cancelled and the exception passed on when it has ended; otherwise what the job threw is.
/// Until a job that is cancelled ends, `cancelled` is called again and again.
void wait_in_python(const std::shared_ptr<Job>& job, const std::function<void()>& cancelled = {});

/// work() on a computing thread; what it returns or throws.
template <class Work>
auto compute(const Work& work, const std::function<void()>& cancelled = {}) {
  using Result = std::invoke_result_t<Work>;
  if constexpr (std::is_void_v<Result>) {
    wait_in_python(start([&work](const Cancel&) { work(); }), cancelled);
  } else {
    std::optional<Result> result;
    wait_in_python(start([&work, &result](const Cancel&) { result.emplace(work()); }), cancelled);
    return std::move(*result);
  }
}

/// While it lives, the calling thread computes, by itself: threads that it made would be missing in a child process,
/// and loops would wait for them. Denormals are zero as on the package's threads. Throws Error as start().
class Here {
 public:
  Here();
  ~Here();
  Here(const Here&) = delete;
  Here& operator=(const Here&) = delete;

 private:
  OneThread alone_;
  uint64_t mode_;  // of the caller's floating point
};

/// work() on the calling thread, which Python's signals cannot interrupt: for what takes a moment and has no products.
/// To hand a text over to another thread takes longer than a linear classifier with it.
template <class Work>
auto compute_here(const Work& work) {
  const Here here;
  const nb::gil_scoped_release released;
  return work();
}

}  // namespace capstan::python
