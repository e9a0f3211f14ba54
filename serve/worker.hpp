// A thread that does what it is given, in order.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "core/base/no_copy.hpp"

namespace capstan {

class Worker : NoCopy {
 public:
  Worker() : thread_([this] { run(); }) {}
  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      tasks_.clear();
    }
    changed_.notify_one();
    thread_.join();
  }

  /// `bytes`: what the task holds. False, and nothing is done, where more than `most_bytes` would wait.
  bool add(std::function<void()> task, size_t bytes, size_t most_bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes_ + bytes > most_bytes) return false;
    bytes_ += bytes;
    tasks_.emplace_back(std::move(task), bytes);
    changed_.notify_one();
    return true;
  }
  bool idle() {
    const std::lock_guard lock(mutex_);
    return bytes_ == 0;
  }

 private:
  void run() {
    for (std::unique_lock lock(mutex_);;) {
      changed_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
      if (stop_) return;
      auto [task, bytes] = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      task = {};
      lock.lock();
      bytes_ -= bytes;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<std::function<void()>, size_t>> tasks_;
  size_t bytes_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace capstan
