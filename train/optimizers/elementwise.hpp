// Optimizers with one formula for each value: AdamW, Lion, SGD. The formulas are kernels (core/kernels/optimizer.hpp),
// the structs here say their settings and what they keep between steps. Names of states are names of tensors in
// checkpoints, so they must not change. tests/train/test_optimizer.cpp holds the formulas.
#pragma once

#include <vector>

#include "core/config/schema.hpp"
#include "train/optimizers/update.hpp"

namespace capstan {

/// Adam with decoupled weight decay. Loshchilov and Hutter 2019, arXiv 1711.05101.
struct AdamWConfig {
  static constexpr const char* type_name = "adamw";
  double beta1 = 0.9;
  double beta2 = 0.95;
  double weight_decay = 0.1;

  static std::vector<StateSpec> states() { return {{"first_moment"}, {"second_moment"}}; }
  void update(const Update& update, std::vector<OptimizerState>& states) const;
};
template <class Fields>
void describe(Fields& f, AdamWConfig& c) {
  f("beta1", c.beta1, between_below(0, 1), "share of the mean gradient that is kept at every step");
  f("beta2", c.beta2, between_below(0, 1), "share of the mean squared gradient that is kept at every step");
  f("weight_decay", c.weight_decay, at_least(0),
    "decoupled decay of matrices: each step uses this value times the learning rate");
}

/// Updates the parameters that the two states hold; both must hold the same ones.
void update_adamw(const AdamWConfig& config, const Update& update, OptimizerState& first_moment,
                  OptimizerState& second_moment);

/// Sign of an interpolated momentum: needs about a tenth of AdamW's learning rate and ten times its decay.
/// Chen et al. 2023, arXiv 2302.06675.
struct LionConfig {
  static constexpr const char* type_name = "lion";
  double weight_decay = 1;

  static std::vector<StateSpec> states() { return {{"momentum"}}; }
  void update(const Update& update, std::vector<OptimizerState>& states) const;
};
template <class Fields>
void describe(Fields& f, LionConfig& c) {
  f("weight_decay", c.weight_decay, at_least(0),
    "decoupled decay of matrices: each step uses this value times the learning rate");
}

/// Stochastic gradient descent with momentum: g' = g + decay w,  m = momentum m + g',  w -= lr m.
struct SgdConfig {
  static constexpr const char* type_name = "sgd";
  double momentum = 0.9;
  double weight_decay = 0;

  static std::vector<StateSpec> states() { return {{"momentum"}}; }
  void update(const Update& update, std::vector<OptimizerState>& states) const;
};
template <class Fields>
void describe(Fields& f, SgdConfig& c) {
  f("momentum", c.momentum, between_below(0, 1), "share of the previous step that is added to the next one");
  f("weight_decay", c.weight_decay, at_least(0), "decay of weight matrices, added to their gradient");
}

}  // namespace capstan
