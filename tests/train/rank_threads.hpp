// Ranks as threads of one process: everything but the network.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "train/ranks/communicator.hpp"
#include "train/support.hpp"

namespace capstan::testing {

/// What is on its way between the ranks of a job.
class Mailboxes {
 public:
  explicit Mailboxes(int size) : size_(size) {}
  int size() const { return size_; }
  void put(int from, int to, std::string bytes) {
    const std::lock_guard lock(mutex_);
    boxes_[{from, to}].push_back(std::move(bytes));
  }
  bool take(int from, int to, std::string& bytes) {
    const std::lock_guard lock(mutex_);
    std::deque<std::string>& box = boxes_[{from, to}];
    if (box.empty()) return false;
    bytes = std::move(box.front());
    box.pop_front();
    return true;
  }

 private:
  int size_;
  std::mutex mutex_;
  std::map<std::pair<int, int>, std::deque<std::string>> boxes_;
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(Mailboxes& boxes, int rank) : boxes_(boxes), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return boxes_.size(); }
  const char* library() const override { return "threads"; }
  uint64_t send(int to, const void* bytes, size_t count) override {
    if (to == rank_) throw std::logic_error("a rank sends to itself");  // nothing receives it: MPI would wait for ever
    boxes_.put(rank_, to, {static_cast<const char*>(bytes), count});
    return 0;
  }
  uint64_t receive(int from, void* bytes, size_t count) override {
    const uint64_t id = ++last_;
    expected_[from].push_back({id, static_cast<char*>(bytes), count});
    return id;
  }
  bool done(uint64_t request) override {
    if (request == 0) return true;
    for (auto& [from, waiting] : expected_) {
      std::string bytes;
      while (!waiting.empty() && boxes_.take(from, rank_, bytes)) {
        if (bytes.size() != waiting.front().count)
          throw std::runtime_error("a message of " + std::to_string(bytes.size()) + " bytes came where one of " +
                                   std::to_string(waiting.front().count) + " was expected");
        std::copy(bytes.begin(), bytes.end(), waiting.front().bytes);
        arrived_.insert(waiting.front().id);
        waiting.pop_front();
      }
    }
    return arrived_.erase(request) > 0;
  }
  void abort(int) override {}
  void finish() override {}

 private:
  struct Expected {
    uint64_t id;
    char* bytes;
    size_t count;
  };
  Mailboxes& boxes_;
  int rank_;
  uint64_t last_ = 0;
  std::map<int, std::deque<Expected>> expected_;  // by sender
  std::set<uint64_t> arrived_;
};

/// body(communicator) in every rank of a job, each a thread; what the first one threw is thrown again.
inline void run_ranks(int size, const std::function<void(Communicator&)>& body, double timeout = 20) {
  Mailboxes boxes(size);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        Communicator ranks(std::make_unique<ThreadTransport>(boxes, rank), timeout);
        body(ranks);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error != nullptr) std::rethrow_exception(error);
}

}  // namespace capstan::testing
