// A thread that does what clients ask for, by turns: server.cpp parses requests on two of them, so that the network
// never waits for a body. Thread-safe. What the limits refuse is answered with 429 (tests/serve/test_clients.cpp).
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "core/base/no_copy.hpp"
#include "serve/client_queue.hpp"

namespace capstan {

class Worker : NoCopy {
 public:
  /// The most bytes that tasks may hold while they wait or are being done: of all clients, and of one.
  struct Limits {
    size_t bytes, per_client;
  };
  explicit Worker(const Limits& limits) : limits_(limits), thread_([this] { run(); }) {}
  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      tasks_.clear();
    }
    changed_.notify_one();
    thread_.join();
  }

  /// `bytes`: the memory that the task holds. False, and the task is not done, where the limits have no room for it.
  bool add(const std::string& client, std::function<void()> task, size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto own = clients_.find(client);
    if (bytes_ + bytes > limits_.bytes || (own == clients_.end() ? 0 : own->second) + bytes > limits_.per_client)
      return false;
    bytes_ += bytes;
    clients_[client] += bytes;
    tasks_.push(client, bytes, {std::move(task), bytes});
    changed_.notify_one();
    return true;
  }
  /// Is no task waiting or being done?
  bool idle() {
    const std::lock_guard lock(mutex_);
    return bytes_ == 0;
  }

 private:
  struct Task {
    std::function<void()> work;
    size_t bytes;
  };

  void run() {
    for (std::unique_lock lock(mutex_);;) {
      changed_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
      if (stop_) return;
      auto [client, task] = tasks_.pop();
      lock.unlock();
      task.work();
      task.work = {};
      lock.lock();
      bytes_ -= task.bytes;
      if ((clients_[client] -= task.bytes) == 0) clients_.erase(client);
    }
  }

  const Limits limits_;
  std::mutex mutex_;
  std::condition_variable changed_;
  ClientQueue<Task> tasks_;
  std::map<std::string, size_t> clients_;  // by client, the bytes of its tasks
  size_t bytes_ = 0;                       // of all tasks
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace capstan
