// Ranks as threads of one process: everything but the network.
#pragma once

#include <chrono>
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
#include <tuple>
#include <vector>

#include "train/ranks/communicator.hpp"
#include "train/support.hpp"

namespace capstan::testing {

/// What is on its way between the ranks of a job.
class Mailboxes {
 public:
  explicit Mailboxes(int size) : size_(size) {}
  int size() const { return size_; }
  void put(int from, int to, Channel channel, std::string bytes) {
    const std::lock_guard lock(mutex_);
    boxes_[{from, to, channel}].push_back(std::move(bytes));
  }
  bool take(int from, int to, Channel channel, std::string& bytes) {
    const std::lock_guard lock(mutex_);
    std::deque<std::string>& box = boxes_[{from, to, channel}];
    if (box.empty()) return false;
    bytes = std::move(box.front());
    box.pop_front();
    return true;
  }

 private:
  int size_;
  std::mutex mutex_;
  std::map<std::tuple<int, int, Channel>, std::deque<std::string>> boxes_;
};

class ThreadTransport final : public Transport {
 public:
  /// `turn`: how long a question takes, as on a busy machine.
  ThreadTransport(Mailboxes& boxes, int rank, std::chrono::milliseconds turn)
      : boxes_(boxes), rank_(rank), turn_(turn) {}
  int rank() const override { return rank_; }
  int size() const override { return boxes_.size(); }
  const char* library() const override { return "threads"; }
  uint64_t send(int to, const void* bytes, size_t count, Channel channel) override {
    if (to == rank_) throw std::logic_error("a rank sends to itself");  // nothing receives it: MPI would wait for ever
    boxes_.put(rank_, to, channel, {static_cast<const char*>(bytes), count});
    return 0;
  }
  uint64_t receive(int from, void* bytes, size_t count, Channel channel) override {
    const uint64_t id = ++last_;
    expected_[{from, channel}].push_back({id, static_cast<char*>(bytes), count});
    return id;
  }
  bool done(uint64_t request) override {
    if (turn_.count() > 0) std::this_thread::sleep_for(turn_);
    if (request == 0) return true;
    for (auto& [sender, waiting] : expected_) {
      std::string bytes;
      while (!waiting.empty() && boxes_.take(sender.first, rank_, sender.second, bytes)) {
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
  std::chrono::milliseconds turn_;
  uint64_t last_ = 0;
  std::map<std::pair<int, Channel>, std::deque<Expected>> expected_;  // by sender
  std::set<uint64_t> arrived_;
};

/// body(communicator) in every rank of a job, each a thread; what the first one threw is thrown again.
inline void run_ranks(int size, const std::function<void(Communicator&)>& body, double timeout = 20,
                      std::chrono::milliseconds turn = {}) {
  Mailboxes boxes(size);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        Communicator ranks(std::make_unique<ThreadTransport>(boxes, rank, turn), timeout);
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
