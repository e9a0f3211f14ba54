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
#include "serve/client_queue.hpp"
#include "serve/engine.hpp"

namespace capstan {

/// What a request takes of a server until it is answered.
struct Need {
  int64_t places = 1;        // sequences and other work, running or waiting
  int64_t answer_bytes = 0;  // that its answer may have
};

class Scheduler : NoCopy {
 public:
  struct Limits {
    Need all{320, 256 << 20}, per_client{160, 128 << 20};
  };
  explicit Scheduler(const Limits& limits);
  ~Scheduler();

  /// What is free again when the last copy is gone; null where there is not so much for this client.
  std::shared_ptr<void> enter(const std::string& client, const Need& need);
  /// More is never free for a client.
  Need most_of_client() const {
    return {std::min(limits_.per_client.places, limits_.all.places),
            std::min(limits_.per_client.answer_bytes, limits_.all.answer_bytes)};
  }
  /// How many places are taken.
  int64_t taken() const;

  void add(std::shared_ptr<Engine> engine, std::shared_ptr<TextJob> job);
  /// `work` is called again and again, between steps and by turns with that of other clients, until it returns false.
  /// It must not throw.
  using Work = std::function<bool()>;
  void add(const std::string& client, Work work);
  /// What is computed ends at its next stop point, and nothing is computed any more. From any thread.
  void stop();

 private:
  void run();
  void compute();
  static bool advance(Engine& engine);

  struct Places {  // who holds one may outlive the scheduler
    std::mutex mutex;
    std::map<std::string, Need> clients;
    Need taken{0, 0};
  };

  Limits limits_;
  std::shared_ptr<Places> places_ = std::make_shared<Places>();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<std::shared_ptr<Engine>, std::shared_ptr<TextJob>>> jobs_;
  std::deque<std::pair<std::string, Work>> new_work_;
  std::atomic<bool> stop_ = false;
  std::vector<std::shared_ptr<Engine>> engines_;  // that have something to do; of the thread
  ClientQueue<Work> work_;                        // of the thread
  std::thread thread_;
};

}  // namespace capstan
