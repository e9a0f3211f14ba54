// Other threads only add work to a queue under a mutex, so that engines need no lock. tests/serve/test_clients.cpp.
#include "serve/scheduler.hpp"

#include <chrono>

#include "core/base/stop.hpp"
#include "core/io/log.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {

using Clock = std::chrono::steady_clock;

Scheduler::~Scheduler() {
  stop();
  thread_.join();
}

void Scheduler::add(const std::shared_ptr<Engine>& engine, const std::shared_ptr<TextJob>& job) {
  engine->add(job);
  engines_.insert(engine);
}

void Scheduler::add(const std::string& client, Work work, size_t size) {
  const std::lock_guard lock(mutex_);
  work_.push(client, std::move(work), size);
  changed_.notify_one();
}

void Scheduler::stop() {
  stop_ = true;
  const std::lock_guard lock(mutex_);
  changed_.notify_one();
}

void Scheduler::run() {
  const StopPoll poll = [this] { return stop_.load(); };
  const StopScope scope(&poll);
  try {
    compute();
  } catch (const Stopped&) {
  }
  for (const auto& engine : engines_) engine->clear();
  engines_.clear();
}

/// One step of an engine. False when there was nothing to do. An error for which no single text is to blame ends all
/// texts of the engine.
bool Scheduler::advance(Engine& engine) {
  try {
    return engine.advance();
  } catch (const Stopped&) {
    throw;
  } catch (const std::exception& error) {
    log_error(fmt::format("{}: {}", engine.name(), error.what()));
    engine.fail_all(error);
    return false;
  }
}

/// Does pieces of work, by turns, for a few milliseconds or until there is none.
void Scheduler::work_a_while() {
  const auto until = Clock::now() + std::chrono::milliseconds(5);
  do {
    std::unique_lock lock(mutex_);
    auto next = work_.pop();
    lock.unlock();
    if (!next) return;
    if (next->second()) add(next->first, std::move(next->second));
  } while (Clock::now() < until && !stop_);
}

/// A round is some work, and at least one step of each engine that has something to do. Steps take as long as the work
/// did, so that many slow requests no more than halve the speed of texts.
void Scheduler::compute() {
  while (!stop_) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || !engines_.empty() || !work_.empty(); });
    }
    const auto begin = Clock::now();
    work_a_while();
    const auto until = Clock::now() + (Clock::now() - begin);
    do {
      for (auto engine = engines_.begin(); engine != engines_.end();)
        engine = advance(**engine) ? std::next(engine) : engines_.erase(engine);
    } while (!engines_.empty() && Clock::now() < until && !stop_);
  }
}

}  // namespace capstan
