// Updates of the flat parameter block, and their state.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/array/array.hpp"
#include "core/config/schema.hpp"
#include "nn/params/param_store.hpp"

namespace capstan {

/// Adam with decoupled weight decay. Loshchilov and Hutter 2019, arXiv 1711.05101.
struct AdamWConfig {
  static constexpr const char* type_name = "adamw";
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
};
template <class Fields>
void describe(Fields& f, AdamWConfig& c) {
  f("beta1", c.beta1, between_below(0, 1), "share of the mean gradient that is kept at every step");
  f("beta2", c.beta2, between_below(0, 1), "share of the mean squared gradient that is kept at every step");
  f("epsilon", c.epsilon, greater(0), "added to the root of the mean squared gradient");
  f("weight_decay", c.weight_decay, at_least(0),
    "decoupled decay of weight matrices, per step times the learning rate");
}

/// Stochastic gradient descent with momentum.
struct SgdConfig {
  static constexpr const char* type_name = "sgd";
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
};
template <class Fields>
void describe(Fields& f, SgdConfig& c) {
  f("momentum", c.momentum, between_below(0, 1), "share of the last step that is kept");
  f("nesterov", c.nesterov, any(), "look one step of momentum ahead");
  f("weight_decay", c.weight_decay, at_least(0), "decay of weight matrices, added to their gradient");
}

/// Sign of an interpolated momentum: wants about a tenth of AdamW's learning rate and ten times its decay. Chen et al.
/// 2023, arXiv 2302.06675.
struct LionConfig {
  static constexpr const char* type_name = "lion";
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 1;
};
template <class Fields>
void describe(Fields& f, LionConfig& c) {
  f("beta1", c.beta1, between_below(0, 1), "weight of the momentum in the direction of the step");
  f("beta2", c.beta2, between_below(0, 1), "share of the momentum that is kept at every step");
  f("weight_decay", c.weight_decay, at_least(0),
    "decoupled decay of weight matrices, per step times the learning rate");
}

using OptimizerConfig = std::variant<AdamWConfig, SgdConfig, LionConfig>;

/// Holds what one optimizer remembers between steps: flat blocks beside the parameters'.
class Optimizer {
 public:
  /// The store must be finalized.
  Optimizer(const OptimizerConfig& config, const ParamStore& params);

  /// One update of all parameters with their gradients times `grad_scale`; the gradients are zero afterwards. Of tables
  /// that are updated by rows, rows without a gradient keep their values and what is remembered of them: they do not
  /// decay, and their momentum waits.
  void step(ParamStore& params, double grad_scale, double lr);

  /// Updates made so far.
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }

  /// For checkpoints: a flat block laid out as the parameters, and what it holds ("first_moment").
  struct State {
    std::string name;
    Array block;
  };
  std::vector<State>& states() { return states_; }
  const std::vector<State>& states() const { return states_; }

 private:
  OptimizerConfig config_;
  std::vector<State> states_;
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
