// One training step: the gradients of its batches and the update of the weights, in one process (LocalStep) or in
// several ranks (train/rank_steps). The loop does not ask which it is. A step that fails or is stopped changes no
// weight: tests/train/test_nonfinite.cpp and test_loop.cpp; accumulated batches are one big batch: test_loop.cpp.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/no_copy.hpp"
#include "data/batches/prefetch.hpp"
#include "models/model.hpp"
#include "nn/params/param_store.hpp"
#include "train/checkpoints/checkpoint.hpp"
#include "train/checkpoints/run_state.hpp"
#include "train/configuration/train_config.hpp"
#include "train/optimizers/optimizer.hpp"
#include "train/steps/lanes.hpp"

namespace capstan {

/// What ends a run: all ranks must see the same.
struct StopStatus {
  int signal = 0;    // that a process was sent; 0: none
  double clock = 0;  // seconds of training in this session
};
/// Asked between and during steps: what this process knows now.
using AskStopStatus = std::function<StopStatus()>;

/// A step, and what it keeps from one to the next: the optimizer, the reader of batches.
class TrainingStep : NoCopy {
 public:
  struct Result {
    StepSums sums;
    std::optional<double> gradient_norm;  // before clipping; none without targets
    bool updated = false;
    std::string problem = {};  // why an update that was due was refused; "" otherwise
  };

  virtual ~TrainingStep() = default;

  /// Reads the next batches of the epoch, computes their gradients and updates the weights; moves the state's position
  /// in the data. Where the loss or a gradient is not finite, the weights stay as they are and the gradients are
  /// cleared. `own`: what this process tells other ranks. May stop (core/base/stop.hpp) before the update, all ranks
  /// together; weights and position are then as before.
  Result run(RunState& state, double learning_rate, const AskStopStatus& own);
  /// Sets tables with ParamOptions::fresh_each_epoch to zero; for the begin of every epoch but the first.
  void empty_fresh_tables();

  /// What a checkpoint saves and restores.
  virtual RunParts parts(RunState& state) { return {params_, optimizer_, state}; }
  const Optimizer& optimizer() const { return optimizer_; }
  const BatchReader& batches() const { return batches_; }

  /// What all ranks know, given what this process knows itself.
  virtual StopStatus agreed(const StopStatus& own) const = 0;
  /// Called by all ranks where one of them was told to stop between two batches.
  virtual void note_signal(int signal) = 0;
  /// Lines for the log about the processes that take part, and a warning if some of them have nothing to do.
  struct Description {
    std::vector<std::string> lines;
    std::string warning;
  };
  virtual Description description() const = 0;
  /// A warning if one process has become slower than the others since the last call; "" otherwise.
  virtual std::string slow_warning() = 0;

 protected:
  /// `batches`: those that this process computes. `owned`: the elements of the parameters that it updates. All
  /// references must outlive it. Throws Error when there is no batch.
  TrainingStep(const Task& task, ParamStore& params, const BatchSource& batches, const TrainConfig& config,
               const std::vector<Elements>& owned);

  /// Adds the gradients of a batch to those of the parameters, and the sums of the whole batch to `sums`.
  virtual void add_gradients(int64_t epoch, int64_t index, const PassOptions& options, const AskStopStatus& own,
                             StepSums& sums) = 0;
  /// The norm of all gradients times `scale`.
  virtual double norm(double scale) = 0;
  /// Runs `update`, which changes the owned elements; afterwards every process has all new values.
  virtual void update(const std::function<void()>& update) = 0;

  ParamStore& params_;
  const TrainConfig& config_;
  BatchReader batches_;
  Lanes lanes_;
  Optimizer optimizer_;

 private:
  StepSums accumulate_gradients(RunState& state, const AskStopStatus& own);
};

/// The step of one process.
class LocalStep final : public TrainingStep {
 public:
  LocalStep(const Task& task, ParamStore& params, const BatchSource& train, const TrainConfig& config);

  StopStatus agreed(const StopStatus& own) const override { return own; }
  void note_signal(int) override {}
  Description description() const override { return {}; }
  std::string slow_warning() override { return ""; }

 private:
  void add_gradients(int64_t epoch, int64_t index, const PassOptions& options, const AskStopStatus& own,
                     StepSums& sums) override;
  double norm(double scale) override { return gradient_norm(params_, scale); }
  void update(const std::function<void()>& update) override { update(); }
};

}  // namespace capstan
