#include "python/bindings/engine.hpp"

#include <csignal>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/stop.hpp"
#include "core/machine/float_mode.hpp"

namespace capstan::python {
namespace {

/// How long a caller waits before it looks for signals.
constexpr std::chrono::milliseconds patience{50};

/// Threads that wait for jobs. Those of a process live as long as it does.
class Pool {
 public:
  void start(std::shared_ptr<Job> job) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      jobs_.push_back(std::move(job));
      ++busy_;
      if (jobs_.size() > idle_) add_thread();
    }
    wanted_.notify_one();  // without the lock, which the thread that wakes up takes first
  }
  bool computes() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return busy_ > 0;
  }

 private:
  void add_thread() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // a new thread has the mask of the one that makes it
    try {
      std::thread([this] { work(); }).detach();
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      jobs_.pop_back();
      --busy_;
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  [[noreturn]] void work() {
    for (;;) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        ++idle_;
        wanted_.wait(lock, [this] { return !jobs_.empty(); });
        --idle_;
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      job->run();
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        --busy_;
      }
      job->end();  // only now, so that a caller that has its result may fork
    }
  }

  std::mutex mutex_;
  std::condition_variable wanted_;
  std::deque<std::shared_ptr<Job>> jobs_;
  size_t idle_ = 0, busy_ = 0;  // threads without a job; jobs that have not ended
};

Pool* pool = new Pool;  // never destroyed: its threads may outlive main()
bool computed_at_fork = false;
bool broken_by_fork = false;
int here = 0;  // how many callers compute themselves; changed with the interpreter's lock

void refuse_after_fork() {
  if (broken_by_fork)
    throw Error(
        "capstan: this process was forked while another thread computed, and the child cannot compute: start processes "
        "before, or with multiprocessing's method \"spawn\"");
}

}  // namespace

void Job::run() {
  const StopPoll cancelled = [this] { return cancel_.requested(); };
  try {
    const StopScope scope(&cancelled);
    work_(cancel_);
  } catch (...) {
    error_ = std::current_exception();
  }
}

void Job::end() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    done_ = true;
  }
  ended_.notify_all();
}

bool Job::wait_for(std::chrono::milliseconds time) {
  std::unique_lock<std::mutex> lock(mutex_);
  return ended_.wait_for(lock, time, [this] { return done_; });
}

void Job::wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  ended_.wait(lock, [this] { return done_; });
}

std::shared_ptr<Job> start(std::function<void(const Cancel&)> work) {
  refuse_after_fork();
  auto job = std::make_shared<Job>(std::move(work));
  pool->start(job);
  return job;
}

Here::Here() : mode_(float_mode()) {
  refuse_after_fork();
  ++here;
  flush_denormals();
}
Here::~Here() {
  set_float_mode(mode_);
  --here;
}

void before_fork() { computed_at_fork = pool->computes() || here > 0; }

void after_fork_in_child() {
  broken_by_fork = broken_by_fork || computed_at_fork;
  pool = new Pool;  // threads of the parent's pool do not exist in this process
}

void wait_in_python(const std::shared_ptr<Job>& job, const std::function<void()>& cancelled) {
  std::optional<nb::python_error> raised;
  {
    const nb::gil_scoped_release released;
    while (!job->wait_for(patience)) {
      if (raised && cancelled) cancelled();
      const nb::gil_scoped_acquire acquired;
      if (raised || PyErr_CheckSignals() == 0) continue;
      raised.emplace();
      job->cancel().request();
    }
  }
  if (raised) throw std::move(*raised);
  if (job->error()) std::rethrow_exception(job->error());
}

}  // namespace capstan::python
