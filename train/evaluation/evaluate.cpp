// evaluate() deals batches to ranks in rounds and to threads within a rank, and adds their sums in the order of the
// batches after each round. Sums of squares travel along, so that a standard error needs no second pass.
// tests/train/test_evaluation.cpp.
#include "train/evaluation/evaluate.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/base/stop.hpp"
#include "core/machine/parallel.hpp"
#include "data/batches/prefetch.hpp"

namespace capstan {
namespace {

/// Tokens evaluated at once: more of them take more memory, not less time.
constexpr int64_t max_tokens = int64_t{1} << 17;

/// Hands the probabilities of rows on to what wants them, from several threads.
struct Decisions {
  const Collected& to;
  std::mutex mutex = {};

  void add(const Array& probabilities, const Ids& truth) {
    if (probabilities.empty()) return;
    const std::lock_guard lock(mutex);
    const int64_t classes = probabilities.dim(1);
    for (int64_t row = 0; row < probabilities.dim(0); ++row) {
      const float* const of_row = probabilities.data() + row * classes;
      if (to.predictions != nullptr && truth[row] != ignored_target) to.predictions->add(of_row, truth[row]);
      if (to.labels != nullptr) to.labels->add(of_row, truth.data() + row * classes);
      if (to.ranked != nullptr) to.ranked->add(of_row, [&](int64_t c) { return truth[row * classes + c] != 0; });
    }
  }
};

/// Collective: adds what the other ranks have collected to what this one has. RankedTexts stay those of this rank.
void gather(const Collected& collected, Communicator& ranks) {
  const auto& [labels, predictions, ranked] = collected;
  const auto add_others = [&](auto& mine) {
    const std::vector<std::string> collected_by_rank = ranks.gather(mine.bytes());
    for (size_t rank = 0; rank < collected_by_rank.size(); ++rank)
      if (static_cast<int>(rank) != ranks.rank()) mine.add(std::string_view(collected_by_rank[rank]));
  };
  if (labels != nullptr && ranks.size() > 1) add_others(*labels);
  if (predictions == nullptr) return;
  if (ranks.size() > 1) add_others(*predictions);
  predictions->sort();
}

/// The sums of one batch, in pieces of micro_batch_tokens or, without, max_tokens: texts of a million tokens follow
/// each other.
Evaluation sums_of(const Task& task, const Batch& batch, int64_t micro_batch_tokens, Decisions& decisions) {
  const TapePause no_tape;
  Evaluation sums;
  for (const Batch& piece : split_rows(batch, micro_batch_tokens > 0 ? micro_batch_tokens : max_tokens)) {
    stop_point();
    const TaskLoss loss = task.loss(piece, Context::evaluation(piece));
    sums.add({static_cast<double>(loss.sum.value().item()), loss.targets, loss.correct});
    decisions.add(loss.probabilities, piece.labels);
  }
  return Evaluation::of_batch(sums.loss_sum, sums.targets, sums.correct);
}

}  // namespace

void Evaluation::add(const Evaluation& other) {
  loss_sum += other.loss_sum;
  targets += other.targets;
  correct += other.correct;
  loss_squares += other.loss_squares;
  loss_targets += other.loss_targets;
  target_squares += other.target_squares;
  batches += other.batches;
  unseen += other.unseen;
}

Evaluation Evaluation::of_batch(double loss_sum, int64_t targets, int64_t correct) {
  const auto count = static_cast<double>(targets);
  return {loss_sum, targets, correct, loss_sum * loss_sum, loss_sum * count, count * count, 1};
}

std::optional<double> Evaluation::standard_error() const {
  if (batches < 2 || !std::isfinite(loss_sum)) return std::nullopt;
  // The linearised variance of a ratio of two sums, over batches: sum of (loss_i - loss() targets_i)^2 / targets^2.
  const double squares = loss_squares - 2 * loss() * loss_targets + loss() * loss() * target_squares;
  return std::sqrt(std::max(0.0, squares)) / static_cast<double>(targets > 0 ? targets : 1);
}

SomeBatches::SomeBatches(const BatchSource& source, const std::vector<int64_t>& turns, size_t own) : source_(source) {
  const int64_t round = std::accumulate(turns.begin(), turns.end(), int64_t{0});
  const int64_t first = std::accumulate(turns.begin(), turns.begin() + static_cast<std::ptrdiff_t>(own), int64_t{0});
  const int64_t count = source.batches_per_epoch(0);
  for (int64_t begin = first; begin < count; begin += round)
    for (int64_t index = begin; index < std::min(begin + turns[own], count); ++index) indices_.push_back(index);
}

Evaluation evaluate(const Task& task, const BatchSource& split, int64_t micro_batch_tokens, Communicator* ranks,
                    const Collected& collected) {
  Communicator one_process;
  if (ranks == nullptr) ranks = &one_process;
  // A rank takes as many batches in its turn as it has threads.
  const int64_t turn = threads();
  const std::vector<int64_t> turns = ranks->gather_values(turn);
  const SomeBatches own(split, turns, static_cast<size_t>(ranks->rank()));
  const int64_t count = split.batches_per_epoch(0);
  const int64_t round = std::accumulate(turns.begin(), turns.end(), int64_t{0});
  constexpr int64_t min_ahead = 2, end_epoch = 1;
  BatchReader batches(own, std::max(min_ahead, turn), end_epoch);
  const int64_t own_count = batches.batches(0);  // 0 where there are fewer batches than ranks
  int64_t read = 0;
  // A rank has `slots` places in what the ranks exchange in a round: the sums of its batches, and at the end whether it
  // was asked to stop.
  const auto slots = static_cast<size_t>(*std::max_element(turns.begin(), turns.end())) + 1;
  Evaluation total;
  Decisions decisions{collected};
  // A batch runs on one thread, and sums are added in the batches' order: results do not depend on threads().
  for (int64_t begin = 0; begin < count; begin += round) {
    std::vector<Evaluation> round_sums(slots * turns.size());
    Evaluation* const own_sums = round_sums.data() + slots * static_cast<size_t>(ranks->rank());
    bool stopped = false;
    for (int64_t done = 0; read < own_count && done < turn && !stopped;) {
      std::vector<Batch> group;
      for (int64_t tokens = 0;
           read < own_count && done + static_cast<int64_t>(group.size()) < turn && tokens < max_tokens; ++read) {
        group.push_back(batches.batch(0, read));
        tokens += group.back().tokens.size();
      }
      try {
        parallel_units(static_cast<int64_t>(group.size()), [&](int64_t i) {
          const OneThread alone;
          const MemoryFor purpose("an evaluation: lower train.micro_batch_tokens or threads");
          own_sums[done + i] = sums_of(task, group[static_cast<size_t>(i)], micro_batch_tokens, decisions);
        });
      } catch (const Stopped&) {
        stopped = true;
      }
      done += static_cast<int64_t>(group.size());
    }
    own_sums[slots - 1].targets = stopped ? 1 : 0;
    static_assert(std::is_trivially_copyable_v<Evaluation>, "ranks exchange its bytes: no vector or map in it");
    ranks->gather_blocks(round_sums.data(), slots * sizeof(Evaluation));
    for (size_t rank = 0; rank < turns.size(); ++rank)
      if (round_sums[slots * rank + slots - 1].targets != 0) throw Stopped();
    for (size_t rank = 0; rank < turns.size(); ++rank)
      for (size_t i = 0; i < static_cast<size_t>(turns[rank]); ++i) total.add(round_sums[slots * rank + i]);
  }
  gather(collected, *ranks);
  if (total.targets == 0) throw Error("evaluation: the split has no targets: give more text or more examples");
  return total;
}

Validation validate(const Task& task, const BatchSource& split, int64_t micro_batch_tokens, Communicator* ranks,
                    const DecisionGoal* goal) {
  if (const int64_t columns = task.label_columns(); columns > 0) {
    LabelReport labels(columns);
    Validation result{evaluate(task, split, micro_batch_tokens, ranks, {&labels}), std::nullopt};
    result.labels = labels.at(labels.best_threshold());
    if (goal != nullptr && goal->kind == DecisionGoal::Kind::macro_f1) {
      LabelReport each(columns, labels.best_thresholds());
      evaluate(task, split, micro_batch_tokens, ranks, {&each});
      result.labels = each.at(default_threshold);
    }
    result.total.correct = result.labels->exact;
    return result;
  }
  if (goal == nullptr) return {evaluate(task, split, micro_batch_tokens, ranks), std::nullopt};
  HeldOutPredictions predictions(goal->classes);
  Validation result{evaluate(task, split, micro_batch_tokens, ranks, {nullptr, &predictions}), std::nullopt};
  result.decisions = decide_held_out(predictions, *goal);
  result.total.correct = result.decisions->correct;
  return result;
}

}  // namespace capstan
