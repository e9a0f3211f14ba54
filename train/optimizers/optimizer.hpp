// Updates of the flat parameter block, and their state.
#pragma once

#include <cstdint>
#include <vector>

#include "core/array/array.hpp"
#include "nn/params/param_store.hpp"
#include "train/optimizers/optimizer_config.hpp"

namespace capstan {

/// One of the optimizers with its state.
class Optimizer {
 public:
  /// The store must be finalized.
  Optimizer(const OptimizerConfig& config, const ParamStore& params);

  /// One update of all parameters with their gradients times `grad_scale`; the gradients are zero afterwards. In
  /// tables that are updated by rows, a row without a gradient keeps its value and its state: it does not decay.
  void step(ParamStore& params, double grad_scale, double lr);

  /// Updates made so far.
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }

  /// For checkpoints, in the order of the config's states().
  std::vector<OptimizerState>& states() { return states_; }
  const std::vector<OptimizerState>& states() const { return states_; }

 private:
  OptimizerConfig config_;
  std::vector<OptimizerState> states_;
  int64_t steps_ = 0;
};

/// Euclidean norm of all gradients times `grad_scale`. Finite exactly when all gradients are.
double gradient_norm(const ParamStore& params, double grad_scale);

/// Factor by which gradients of this norm are shortened so that their norm is at most `limit`; 1 when `limit` is 0.
double clip_factor(double norm, double limit);

/// Moving average of the weights, average = d average + (1 - d) weights after every update, with d = min(decay, (1 + n)
/// / (10 + n)) at update n so that the random start is forgotten soon.
class WeightAverage {
 public:
  WeightAverage(double decay, const ParamStore& params);
  void update(const ParamStore& params, int64_t updates);
  /// Exchanges the averaged and the trained weights: evaluate between two calls.
  void swap(ParamStore& params);
  real* block() { return block_.shared_data(); }
  const real* block() const { return block_.data(); }

 private:
  double decay_;
  Array block_;
};

}  // namespace capstan
