// While a thread works, the calling one hears whether another rank was asked to stop: messages must come from the
// thread that opened them. Each rank tells all others once how its work has ended.
// tests/train/linear/test_rank_work.cpp.
#include "train/linear/rank_work.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "core/machine/float_mode.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {
namespace {

/// How work has ended.
enum class End : char { whole, stopped };
constexpr std::chrono::milliseconds between_looks{20};  // for words of other ranks
constexpr int looks_between_searches = 10;              // for ranks that have ended
constexpr size_t bytes_at_once = size_t{16} << 20;

/// A thread that runs some work. It ends early where it is destroyed before: `stop` is what the poll asks.
class Worker : NoCopy {
 public:
  Worker(const std::function<void()>& work, const StopPoll& poll, std::atomic<bool>& stop)
      : stop_(stop), thread_([this, &work, &poll] {
          flush_denormals();
          const StopScope scope(&poll);
          try {
            work();
          } catch (...) {
            error_ = std::current_exception();
          }
          const std::lock_guard lock(mutex_);
          ended_ = true;
          changed_.notify_one();
        }) {}
  ~Worker() {
    if (!thread_.joinable()) return;
    stop_ = true;
    thread_.join();
  }
  /// Waits for its end, but not longer than that. Returns whether it has ended.
  bool ends_within(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [this] { return ended_; });
  }
  /// Call it after the end: throws what the work has thrown.
  void check() {
    thread_.join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::atomic<bool>& stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace

RankWork::RankWork(Communicator* ranks)
    : ranks_(ranks != nullptr ? *ranks : one_process_), outer_(StopScope::current()) {
  if (size() == 1) return;
  alone_.emplace(nullptr);
  long_timeout_.emplace(ranks_);
}

void RankWork::run(const std::function<void()>& work) {
  if (size() == 1) return work();
  std::vector<End> ends(static_cast<size_t>(size()), End::whole);
  std::vector<Pending> words;
  for (int rank = 0; rank < size(); ++rank)
    if (rank != this->rank()) words.push_back(ranks_.receive(rank, &ends[static_cast<size_t>(rank)], sizeof(End)));
  End& own = ends[static_cast<size_t>(rank())];
  try {
    Worker worker(work, poll_, heard_);
    for (int look = 1; !worker.ends_within(between_looks); ++look) {
      for (Pending& word : words)
        if (!word.done && ranks_.is_done(word) && ends[static_cast<size_t>(word.peer)] == End::stopped) heard_ = true;
      if (look % looks_between_searches == 0) ranks_.look_for_ended();
    }
    worker.check();
  } catch (const Stopped&) {
    own = End::stopped;
  }
  for (int step = 1; step < size(); ++step) words.push_back(ranks_.send((rank() + step) % size(), &own, sizeof(own)));
  ranks_.wait(words);
  if (std::count(ends.begin(), ends.end(), End::stopped) > 0) throw Stopped();
}

std::vector<std::string> RankWork::gather(const std::function<std::string()>& compute) {
  if (size() == 1) return {compute()};
  std::string mine;
  End own = End::whole;
  try {
    const StopScope scope(&poll_);
    stop_point();
    mine = compute();
  } catch (const Stopped&) {
    mine.clear();
    own = End::stopped;
  }
  mine.push_back(static_cast<char>(own));
  std::vector<std::string> texts = ranks_.gather(mine);
  bool stopped = false;
  for (std::string& text : texts) {
    stopped = stopped || static_cast<End>(text.back()) == End::stopped;
    text.pop_back();
  }
  if (stopped) throw Stopped();
  return texts;
}

std::string RankWork::broadcast(std::string_view of_root, int root) { return ranks_.broadcast(of_root, root); }

void RankWork::broadcast_bytes(char* bytes, size_t count) {
  if (size() == 1) return;
  for (size_t at = 0; at < count; at += bytes_at_once) {
    const size_t piece = std::min(bytes_at_once, count - at);
    const std::string all = broadcast({bytes + at, piece});
    std::memcpy(bytes + at, all.data(), piece);
  }
}

}  // namespace capstan
