#include "serve/scheduler.hpp"

#include <algorithm>

#include "core/base/stop.hpp"
#include "core/machine/parallel.hpp"
#include "train/records/log.hpp"

namespace capstan {

Scheduler::Scheduler(const Limits& limits) : limits_(limits), thread_([this] { run(); }) {}

Scheduler::~Scheduler() {
  stop();
  thread_.join();
}

std::shared_ptr<void> Scheduler::enter(const std::string& client, int64_t places) {
  const std::lock_guard lock(places_->mutex);
  const auto known = places_->clients.find(client);
  const int64_t own = known == places_->clients.end() ? 0 : known->second;
  if (places_->taken + places > limits_.places || own + places > limits_.per_client) return nullptr;
  places_->taken += places;
  places_->clients[client] = own + places;
  return std::shared_ptr<void>(places_.get(), [all = places_, client, places](void*) {
    const std::lock_guard again(all->mutex);
    all->taken -= places;
    if ((all->clients[client] -= places) == 0) all->clients.erase(client);
  });
}

int64_t Scheduler::taken() const {
  const std::lock_guard lock(places_->mutex);
  return places_->taken;
}

void Scheduler::add(std::shared_ptr<Engine> engine, std::shared_ptr<TextJob> job) {
  const std::lock_guard lock(mutex_);
  jobs_.emplace_back(std::move(engine), std::move(job));
  changed_.notify_one();
}

void Scheduler::add(Work work) {
  const std::lock_guard lock(mutex_);
  new_work_.push_back(std::move(work));
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

/// False when there was nothing to do. What no single text is to blame for ends all of them.
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

void Scheduler::compute() {
  for (bool busy = false; !stop_;) {
    std::unique_lock lock(mutex_);
    if (!busy) changed_.wait(lock, [this] { return stop_ || !jobs_.empty() || !new_work_.empty(); });
    auto jobs = std::exchange(jobs_, {});
    for (Work& work : new_work_) work_.push_back(std::move(work));
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
    Work work = std::move(work_.front());
    work_.pop_front();
    if (work()) work_.push_back(std::move(work));
  }
}

}  // namespace capstan
