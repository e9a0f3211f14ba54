// How several ranks train a linear classifier: each does a part of the work, and all end together, also where only one
// of them is asked to stop. Used by the solver (unit_work), AdaGrad (adagrad), train_linear and read_ngrams.
// tests/train/linear/test_rank_work.cpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/no_copy.hpp"
#include "core/base/stop.hpp"
#include "train/ranks/communicator.hpp"

namespace capstan {

/// All methods but the first three are collective (Communicator). With several ranks, stop points do nothing while it
/// lives, but for those of the work that run() and gather() are given: a rank that stopped alone would leave the others
/// waiting. Other ranks may work for as long as they need (Communicator::LongTimeout). One process does its work at
/// once.
class RankWork : NoCopy {
 public:
  /// `ranks` must outlive it; null: one process. The poll of the calling thread is that of the work.
  explicit RankWork(Communicator* ranks);

  int rank() const { return ranks_.rank(); }
  int size() const { return ranks_.size(); }
  bool first() const { return ranks_.first(); }

  /// Runs work that sends no messages, and returns when all ranks have run theirs. Where one of them is asked to stop,
  /// the others are told at once, and Stopped is thrown on all. May use a thread of its own, which begins parallel
  /// loops as the calling one does.
  void run(const std::function<void()>& work);
  /// Returns what all ranks compute, by rank: for work that takes moments. Throws Stopped on all where one was asked to
  /// stop.
  std::vector<std::string> gather(const std::function<std::string()>& compute);
  /// Returns what rank `root` gives; other ranks may give anything.
  std::string broadcast(std::string_view of_root, int root = 0);
  /// Replaces numbers by those of rank 0, in little memory.
  template <class T>
  void broadcast_numbers(std::vector<T>& numbers) {
    broadcast_bytes(reinterpret_cast<char*>(numbers.data()), numbers.size() * sizeof(T));
  }

 private:
  void broadcast_bytes(char* bytes, size_t count);

  Communicator one_process_;
  Communicator& ranks_;
  const StopPoll* const outer_;
  std::atomic<bool> heard_{false};  // was another rank asked to stop?
  const StopPoll poll_ = [this] { return heard_ || (outer_ != nullptr && (*outer_)()); };
  std::optional<StopScope> alone_;  // in which nothing stops
  std::optional<Communicator::LongTimeout> long_timeout_;
};

}  // namespace capstan
