// One training step in several ranks, which compute the lanes of a batch and own the parameters together. The training
// loop uses it as a TrainingStep; run/ makes it by make_step(). It gives the bits of a step in one process:
// tests/train/test_ranks.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/optimizers/shares.hpp"
#include "train/rank_steps/rank_gradients.hpp"
#include "train/ranks/communicator.hpp"
#include "train/steps/training_step.hpp"

namespace capstan {

/// What a rank has of a batch and of the parameters. A base class of RankStep, in front of TrainingStep, so that it is
/// made before that and outlives it: a thread of the step may still be reading a batch when the step is destroyed.
struct RankPart {
  RankBatches own_batches;
  Shares shares;
  std::vector<Elements> owned;  // elements of the parameters
};

/// All ranks call the same methods in the same order.
class RankStep final : private RankPart, public TrainingStep {
 public:
  RankStep(const Task& task, ParamStore& params, const BatchSource& train, const TrainConfig& config,
           Communicator& ranks);

  RunParts parts(RunState& state) override;
  /// What the ranks agreed on with the last batch.
  StopStatus agreed(const StopStatus&) const override { return gradients_.stop_status(); }
  void note_signal(int signal) override { gradients_.note_signal(signal); }
  Description description() const override;
  std::string slow_warning() override;

 private:
  void add_gradients(int64_t epoch, int64_t index, const PassOptions& options, const AskStopStatus& own,
                     StepSums& sums) override;
  double norm(double scale) override { return gradients_.norm(scale); }
  void update(const std::function<void()>& update) override { gradients_.update(update); }

  Communicator& ranks_;
  RankGradients gradients_;
  int slow_rank_ = -1;  // the rank that a warning has named last
};

/// The step of one process or of one of several ranks. All references must outlive it. Throws ConfigError for more
/// ranks than a batch has lanes.
std::unique_ptr<TrainingStep> make_step(const Task& task, ParamStore& params, const BatchSource& train,
                                        const TrainConfig& config, Communicator& ranks);

}  // namespace capstan
