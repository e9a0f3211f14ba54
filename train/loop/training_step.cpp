#include "train/loop/training_step.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "nn/params/bf16_weights.hpp"
#include "train/loop/signals.hpp"
#include "train/optimizers/fresh_tables.hpp"

namespace capstan {

TrainingStep::TrainingStep(const Task& task, ParamStore& params, const BatchSource& train, const TrainConfig& config,
                           Communicator& ranks)
    : params_(params),
      config_(config),
      ranks_(ranks),
      rank_batches_(train, config.lanes, ranks.rank(), ranks.size()),
      batches_(alone() ? train : static_cast<const BatchSource&>(rank_batches_)),
      lanes_(task, params),
      shares_(shares_for(config.optimizer, params, ranks.size())),
      owned_(alone() ? std::vector<Elements>{{0, params.flat_size()}} : shares_.parts(ranks.rank())),
      rank_gradients_(ranks, params, shares_, lanes_),
      optimizer_(config.optimizer, params, owned_),
      average_(config.ema_decay > 0 ? std::make_unique<WeightAverage>(config.ema_decay, params, owned_) : nullptr) {}

void TrainingStep::empty_fresh_tables() { capstan::empty_fresh_tables(params_, optimizer_, average_.get()); }

void TrainingStep::swap_average() {
  if (!average_) return;
  average_->swap(params_);
  if (!alone()) rank_gradients_.gather_values();
}

TrainingStep::Result TrainingStep::run(RunState& state, double learning_rate, double session_seconds) {
  Result result;
  try {
    result.sums = accumulate_gradients(state, session_seconds);
  } catch (const std::domain_error& error) {  // the checked tape names the operation
    params_.clear_grads();
    result.problem = error.what();
    return result;
  }
  if (result.sums->targets == 0) return result;
  const double scale = 1 / static_cast<double>(result.sums->targets);
  const double norm = alone() ? gradient_norm(params_, scale) : rank_gradients_.norm(scale);
  result.gradient_norm = norm;
  if (!std::isfinite(result.sums->loss) || !std::isfinite(norm)) {
    params_.clear_grads();
    result.problem = std::isfinite(result.sums->loss) ? "the gradient is not finite" : "the loss is not finite";
    return result;
  }
  const auto step = [&] { optimizer_.step(params_, scale * clip_factor(norm, config_.grad_clip), learning_rate); };
  alone() ? step() : rank_gradients_.update(step);
  state.optimizer_step = optimizer_.steps();
  if (average_) average_->update(params_, optimizer_.steps());
  result.updated = true;
  return result;
}

StepSums TrainingStep::accumulate_gradients(RunState& state, double session_seconds) {
  StepSums sums;
  const int64_t epoch = state.epoch, batches = batches_.batches(epoch);
  // The position moves first: a skipped step has used its batches too.
  const int64_t first = state.batch, last = first + std::min(config_.accumulate, batches - first);
  state.batch = last;
  if (last >= batches) {
    ++state.epoch;
    state.batch = 0;
  }
  std::optional<Bf16Weights> rounded;
  if (config_.precision == Precision::bf16) rounded.emplace(params_);
  PassOptions options{
      config_.lanes, config_.micro_batch_tokens, static_cast<uint64_t>(state.step), {config_.check_finite}};
  for (int64_t index = first; index < last; ++index) {
    options.fresh = index == first;
    const Batch batch = batches_.batch(epoch, index);
    if (alone())
      lanes_.add_gradients(batch, options, sums);
    else
      rank_gradients_.add_gradients(batch, rank_batches_.share(epoch, index), options, StopSignals::received(),
                                    session_seconds, sums);
  }
  return sums;
}

}  // namespace capstan
