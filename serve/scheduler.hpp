// The thread that computes: steps of the texts, and between them other work in pieces.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/base/no_copy.hpp"
#include "serve/engine.hpp"

namespace capstan {

class Scheduler : NoCopy {
 public:
  struct Limits {
    int64_t places = 320;  // sequences and other work, running or waiting
    int64_t per_client = 160;
  };
  explicit Scheduler(const Limits& limits);
  ~Scheduler();

  /// Places that are free again when the last copy is gone; null where there are not so many for this client.
  std::shared_ptr<void> enter(const std::string& client, int64_t places);
  /// More are never free for a client.
  int64_t most_of_client() const { return std::min(limits_.per_client, limits_.places); }
  /// How many are taken.
  int64_t taken() const;

  void add(std::shared_ptr<Engine> engine, std::shared_ptr<TextJob> job);
  /// `work` is called again and again, between steps, until it returns false. It must not throw.
  using Work = std::function<bool()>;
  void add(Work work);
  /// What is computed ends at its next stop point, and nothing is computed any more. From any thread.
  void stop();

 private:
  void run();
  void compute();
  static bool advance(Engine& engine);

  struct Places {  // who holds one may outlive the scheduler
    std::mutex mutex;
    std::map<std::string, int64_t> clients;
    int64_t taken = 0;
  };

  Limits limits_;
  std::shared_ptr<Places> places_ = std::make_shared<Places>();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<std::shared_ptr<Engine>, std::shared_ptr<TextJob>>> jobs_;
  std::deque<Work> new_work_;
  std::atomic<bool> stop_ = false;
  std::vector<std::shared_ptr<Engine>> engines_;  // that have something to do; of the thread
  std::deque<Work> work_;                         // of the thread
  std::thread thread_;
};

}  // namespace capstan
