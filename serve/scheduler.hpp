// The thread that computes: steps of the texts, and between them other work in pieces. Reading threads add jobs and
// work. Only this thread touches the states of engines. tests/serve/test_clients.cpp holds limits, turns and the end.
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
  int64_t answer_bytes = 0;  // the most that its answer may have
};

class Scheduler : NoCopy {
 public:
  struct Limits {
    Need all{320, 256 << 20}, per_client{160, 128 << 20};  // as ServeOptions: slots and queue, and half for a client
  };
  explicit Scheduler(const Limits& limits);
  ~Scheduler();

  /// Takes what a request needs, until the last copy of the result is gone. Null where the client cannot have so much
  /// now.
  std::shared_ptr<void> enter(const std::string& client, const Need& need);
  /// The most that a client can ever have.
  Need max_of_client() const {
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
  /// Ends what is being computed at its next stop point; nothing is computed afterwards. From any thread.
  void stop();

 private:
  void run();
  void compute();
  static bool advance(Engine& engine);

  struct Places {  // shared, since what enter() returned may outlive the scheduler
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
  // For the computing thread alone:
  std::vector<std::shared_ptr<Engine>> engines_;  // those that have something to do
  ClientQueue<Work> work_;
  std::thread thread_;
};

}  // namespace capstan
