// Loss, accuracy and other measures over a whole split: validations of a training, and `capstan eval`. No result
// depends on batches, threads or ranks: tests/train/test_evaluation.cpp, test_lanes.cpp and test_ranks.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/io/progress.hpp"
#include "data/batches/batcher.hpp"
#include "data/batches/labelled_texts.hpp"
#include "models/model.hpp"
#include "train/evaluation/classification_report.hpp"
#include "train/evaluation/label_report.hpp"
#include "train/evaluation/ranked_texts.hpp"
#include "train/ranks/communicator.hpp"

namespace capstan {

/// Sums over all targets of a split, so that means do not depend on how it is divided into batches.
struct Evaluation {
  double loss_sum = 0;  // nats
  int64_t targets = 0;
  int64_t correct = 0;
  /// Over the batches: sums of loss_sum², of loss_sum times targets, and of targets²; their number.
  double loss_squares = 0, loss_targets = 0, target_squares = 0;
  int64_t batches = 0;
  int64_t unseen = 0;  // further targets, of classes that the model does not have: they are wrong, and have no loss

  /// The sums of one batch.
  static Evaluation of_batch(double loss_sum, int64_t targets, int64_t correct);
  void add(const Evaluation& other);
  double loss() const { return loss_sum / static_cast<double>(targets > 0 ? targets : 1); }
  /// The standard error of loss(), from how much the batches differ; none for a single batch, and for a loss that is
  /// not finite.
  std::optional<double> standard_error() const;
  double bits() const { return loss() / 0.6931471805599453; }
  double accuracy() const {
    return static_cast<double>(correct) / static_cast<double>(std::max<int64_t>(targets + unseen, 1));
  }
};

/// What an evaluation hands on beside its sums; null: not wanted.
struct Collected {
  LabelReport* labels = nullptr;              // the decisions of all ranks, of a multi-label task
  HeldOutPredictions* predictions = nullptr;  // of all ranks, of a classifier that gives a text one label
  RankedTexts* ranked = nullptr;              // of this rank, of a multi-label task
};

/// Runs `task` over epoch 0 of `split`, each batch on one thread; the result does not depend on the numbers of threads
/// and ranks. As many batches as there are threads run at once, but no further batch is added to those that have
/// 131,072 tokens together. All ranks call it. May stop (core/base/stop.hpp): where one rank does, all of them do. What
/// is correct of a multi-label task follows from a threshold, so Evaluation::correct stays 0. `micro_batch_tokens`: of
/// split_rows(); 0: 131,072. `ranks` may be null: one process. Throws Error when there are no targets.
Evaluation evaluate(const Task& task, const BatchSource& split, int64_t micro_batch_tokens = 0,
                    Communicator* ranks = nullptr, const Collected& collected = {});

/// Validation::by of a linear classifier without a valid split: all training texts, each held out once, or some of
/// them.
constexpr const char *cross_validation = "cross-validation", *held_out_texts = "held-out texts";

/// What a validation finds.
struct Validation {
  Evaluation total;                    // multi-label: a target is a text, correct if all its labels are right
  std::optional<LabelFigures> labels;  // multi-label figures at the threshold with the highest micro-F1
  std::optional<DecisionFigures> decisions = std::nullopt;  // where there is a goal for them
  const char* by = "";                                      // cross_validation or held_out_texts; "": the valid split
};
/// evaluate(), with the threshold of a multi-label task, and the rule for the goal of decisions, chosen on this split.
/// For the macro-F1 of a multi-label task, that is a threshold for each label, and the split is read twice. `goal`
/// may be null.
Validation validate(const Task& task, const BatchSource& split, int64_t micro_batch_tokens = 0,
                    Communicator* ranks = nullptr, const DecisionGoal* goal = nullptr);

/// A source that adds one to the progress with every batch that is asked for.
class WatchedBatches final : public BatchSource {
 public:
  WatchedBatches(const BatchSource& source, Progress& progress) : source_(source), progress_(progress) {}
  int64_t examples_per_epoch() const override { return source_.examples_per_epoch(); }
  int64_t batches_per_epoch(int64_t epoch) const override { return source_.batches_per_epoch(epoch); }
  Batch batch(int64_t epoch, int64_t index) const override {
    progress_.add(1);
    return source_.batch(epoch, index);
  }

 private:
  const BatchSource& source_;
  Progress& progress_;
};

/// Some batches of a source, as an epoch 0 of their own.
class SomeBatches final : public BatchSource {
 public:
  /// The batches of epoch 0 are dealt out in rounds: in each, rank i gets the next turns[i] of them. This source has
  /// those of rank `own`.
  SomeBatches(const BatchSource& source, const std::vector<int64_t>& turns, size_t own);
  int64_t examples_per_epoch() const override { return static_cast<int64_t>(indices_.size()); }
  int64_t batches_per_epoch(int64_t) const override { return static_cast<int64_t>(indices_.size()); }
  Batch batch(int64_t epoch, int64_t index) const override {
    return source_.batch(epoch, indices_[static_cast<size_t>(index)]);
  }

 private:
  const BatchSource& source_;
  std::vector<int64_t> indices_;
};

}  // namespace capstan
