// Sums the gradients of a step's batches, checks loss and norm, and updates the weights. Until the update begins, an
// error or a stop leaves weights and position as they were: tests/train/test_nonfinite.cpp and test_loop.cpp.
#include "train/steps/training_step.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/stop.hpp"
#include "core/machine/profile.hpp"
#include "nn/params/bf16_weights.hpp"
#include "nn/params/param_store.hpp"

namespace capstan {

TrainingStep::TrainingStep(const Task& task, ParamStore& params, const BatchSource& batches, const TrainConfig& config,
                           const std::vector<Elements>& owned)
    : params_(params),
      config_(config),
      batches_(batches),
      lanes_(task, params),
      optimizer_(config.optimizer, params, owned) {
  if (batches_.batches(0) <= 0)
    throw Error(
        "train: the training data does not fill a single batch: give more data, or lower train.batch_size or the "
        "sequence length");
}

void TrainingStep::empty_fresh_tables() { capstan::empty_fresh_tables(params_, optimizer_); }

TrainingStep::Result TrainingStep::run(RunState& state, double learning_rate, const AskStopStatus& own) {
  Result result;
  const int64_t epoch = state.epoch, batch = state.batch;
  try {
    result.sums = accumulate_gradients(state, own);
  } catch (const Stopped&) {
    params_.clear_grads();
    state.epoch = epoch;
    state.batch = batch;
    throw;
  }
  const StopScope whole(nullptr);  // from here on the step is not stopped: half an update would be none
  if (result.sums.targets == 0) return result;
  const double scale = 1 / static_cast<double>(result.sums.targets);
  const double size = norm(scale);
  result.gradient_norm = size;
  if (!std::isfinite(result.sums.loss) || !std::isfinite(size)) {
    params_.clear_grads();
    result.problem = std::isfinite(result.sums.loss) ? "the gradient is not finite" : "the loss is not finite";
    return result;
  }
  // The optimizer leaves gradients of 0, on which PassOptions::fresh of the next step relies.
  const bool bf16 = config_.precision == Precision::bf16;
  update([&] { optimizer_.step(params_, scale * clip_factor(size, config_.grad_clip), learning_rate, bf16); });
  state.optimizer_step = optimizer_.steps();
  result.updated = true;
  return result;
}

StepSums TrainingStep::accumulate_gradients(RunState& state, const AskStopStatus& own) {
  StepSums sums;
  const int64_t epoch = state.epoch, batches = batches_.batches(epoch);
  const int64_t first = state.batch, last = first + std::min(config_.accumulate, batches - first);
  state.batch = last;
  if (last >= batches) {
    ++state.epoch;
    state.batch = 0;
  }
  std::optional<Bf16Weights> rounded;
  if (config_.precision == Precision::bf16) rounded.emplace(params_);
  PassOptions options{config_.lanes, config_.micro_batch_tokens, static_cast<uint64_t>(state.step)};
  for (int64_t index = first; index < last; ++index) {
    options.fresh = index == first;
    add_gradients(epoch, index, options, own, sums);
  }
  return sums;
}

LocalStep::LocalStep(const Task& task, ParamStore& params, const BatchSource& train, const TrainConfig& config)
    : TrainingStep(task, params, train, config, {{0, params.flat_size()}}) {}

void LocalStep::add_gradients(int64_t epoch, int64_t index, const PassOptions& options, const AskStopStatus&,
                              StepSums& sums) {
  lanes_.add_gradients(batches_.batch(epoch, index), options, sums);
}

}  // namespace capstan
