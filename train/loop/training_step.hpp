// One training step: the gradients of its batches, computed by lanes and ranks, and the update of the weights.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/task.hpp"
#include "nn/params/param_store.hpp"
#include "train/checkpoints/checkpoint.hpp"
#include "train/checkpoints/config.hpp"
#include "train/checkpoints/run_state.hpp"
#include "train/optimizers/optimizer.hpp"
#include "train/optimizers/shares.hpp"
#include "train/rank_steps/rank_batches.hpp"
#include "train/rank_steps/rank_gradients.hpp"
#include "train/ranks/communicator.hpp"
#include "train/steps/batch_reader.hpp"
#include "train/steps/lanes.hpp"

namespace capstan {

class TrainingStep {
 public:
  struct Result {
    std::optional<StepSums> sums;         // none: the checked tape found a value that is not finite
    std::optional<double> gradient_norm;  // before clipping; none without targets
    bool updated = false;
    std::string problem = {};  // why an update that was due was refused; "" otherwise
  };

  /// All references must outlive it.
  TrainingStep(const Task& task, ParamStore& params, const BatchSource& train, const TrainConfig& config,
               Communicator& ranks);

  /// Reads the next batches of the epoch, computes their gradients and updates the weights; moves the state's position
  /// in the data. Where the loss or a gradient is not finite, the weights stay as they are and the gradients are
  /// cleared. `session_seconds`: what rank 0 tells the others.
  Result run(RunState& state, double learning_rate, double session_seconds);
  /// At the begin of an epoch that is not the first.
  void empty_fresh_tables();

  /// The averaged weights into the store, or back. Nothing without an average.
  void swap_average();

  RunParts parts(RunState& state) { return {params_, optimizer_, average_.get(), state, &ranks_, owned_}; }
  const Optimizer& optimizer() const { return optimizer_; }
  const BatchReader& batches() const { return batches_; }
  /// Of the first batch.
  BatchShare first_share() const { return rank_batches_.share(0, 0); }
  RankGradients& rank_gradients() { return rank_gradients_; }
  const RankGradients& rank_gradients() const { return rank_gradients_; }

 private:
  bool alone() const { return ranks_.size() == 1; }
  StepSums accumulate_gradients(RunState& state, double session_seconds);

  ParamStore& params_;
  const TrainConfig& config_;
  Communicator& ranks_;
  RankBatches rank_batches_;
  BatchReader batches_;
  Lanes lanes_;
  Shares shares_;
  std::vector<Elements> owned_;
  RankGradients rank_gradients_;
  Optimizer optimizer_;
  std::unique_ptr<WeightAverage> average_;  // null: none
};

}  // namespace capstan
