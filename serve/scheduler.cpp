// Reading threads only append to lists under a mutex; the computing thread takes the lists over between rounds, so that
// engines need no lock. tests/serve/test_clients.cpp.
#include "serve/scheduler.hpp"

#include <algorithm>

#include "core/base/stop.hpp"
#include "core/io/log.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {

Scheduler::Scheduler(const Limits& limits) : limits_(limits), thread_([this] { run(); }) {}

Scheduler::~Scheduler() {
  stop();
  thread_.join();
}

std::shared_ptr<void> Scheduler::enter(const std::string& client, const Need& need) {
  const auto fits = [&](const Need& taken, const Need& most) {
    return taken.places + need.places <= most.places && taken.answer_bytes + need.answer_bytes <= most.answer_bytes;
  };
  const std::lock_guard lock(places_->mutex);
  const auto known = places_->clients.find(client);
  const Need own = known == places_->clients.end() ? Need{0, 0} : known->second;
  if (!fits(places_->taken, limits_.all) || !fits(own, limits_.per_client)) return nullptr;
  for (Need* const taken : {&places_->taken, &places_->clients.try_emplace(client, Need{0, 0}).first->second}) {
    taken->places += need.places;
    taken->answer_bytes += need.answer_bytes;
  }
  return std::shared_ptr<void>(places_.get(), [places = places_, client, need](void*) {
    const std::lock_guard again(places->mutex);
    for (Need* const taken : {&places->taken, &places->clients[client]}) {
      taken->places -= need.places;
      taken->answer_bytes -= need.answer_bytes;
    }
    if (places->clients[client].places == 0) places->clients.erase(client);
  });
}

int64_t Scheduler::taken() const {
  const std::lock_guard lock(places_->mutex);
  return places_->taken.places;
}

void Scheduler::add(std::shared_ptr<Engine> engine, std::shared_ptr<TextJob> job) {
  const std::lock_guard lock(mutex_);
  jobs_.emplace_back(std::move(engine), std::move(job));
  changed_.notify_one();
}

void Scheduler::add(const std::string& client, Work work) {
  const std::lock_guard lock(mutex_);
  new_work_.emplace_back(client, std::move(work));
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
  work_.clear();
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

/// A round is one step of each engine that has something to do, and one piece of other work.
void Scheduler::compute() {
  for (bool busy = false; !stop_;) {
    std::unique_lock lock(mutex_);
    if (!busy) changed_.wait(lock, [this] { return stop_ || !jobs_.empty() || !new_work_.empty(); });
    auto jobs = std::exchange(jobs_, {});
    for (auto& [client, work] : new_work_) work_.push(client, 0, std::move(work));
    new_work_.clear();
    lock.unlock();
    for (auto& [engine, job] : jobs) {
      if (std::find(engines_.begin(), engines_.end(), engine) == engines_.end()) engines_.push_back(engine);
      engine->add(std::move(job));
    }
    jobs.clear();
    busy = false;
    for (size_t i = engines_.size(); i-- > 0;) {
      if (advance(*engines_[i]))
        busy = true;
      else
        engines_.erase(engines_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (work_.empty()) continue;
    busy = true;
    auto [client, work] = work_.pop();
    if (work()) work_.push(client, 0, std::move(work));
  }
}

}  // namespace capstan
