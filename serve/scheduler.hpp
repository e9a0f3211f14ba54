// The thread that computes: steps of the texts, and between them other work in pieces, which requests begin with. Only
// this thread touches engines. tests/serve/test_clients.cpp holds turns and the end.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "core/base/no_copy.hpp"
#include "serve/client_queue.hpp"
#include "serve/engine.hpp"

namespace capstan {

class Scheduler : NoCopy {
 public:
  Scheduler() : thread_([this] { run(); }) {}
  ~Scheduler();

  /// From the computing thread.
  void add(const std::shared_ptr<Engine>& engine, const std::shared_ptr<TextJob>& job);
  /// `work` is called again and again, between steps and by turns with that of other clients, until it returns false.
  /// It must not throw. Of a client's work, the smallest comes first. From any thread.
  using Work = std::function<bool()>;
  void add(const std::string& client, Work work, size_t size = 0);
  /// Ends what is being computed at its next stop point; nothing is computed afterwards. From any thread.
  void stop();

 private:
  void run();
  void compute();
  void work_a_while();
  static bool advance(Engine& engine);

  std::mutex mutex_;  // guards work_
  std::condition_variable changed_;
  ClientQueue<Work> work_;
  std::atomic<bool> stop_ = false;
  std::set<std::shared_ptr<Engine>> engines_;  // those that have something to do; for the computing thread alone
  std::thread thread_;
};

}  // namespace capstan
