// Sign of an interpolated momentum: needs about a tenth of AdamW's learning rate and ten times its decay.
// Chen et al. 2023, arXiv 2302.06675.
#pragma once

#include <vector>

#include "core/config/schema.hpp"
#include "train/optimizers/update.hpp"

namespace capstan {

struct LionConfig {
  static constexpr const char* type_name = "lion";
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 1;

  static std::vector<StateSpec> states() { return {{"momentum"}}; }
  void update(const Update& update, std::vector<OptimizerState>& states) const;
};
template <class Fields>
void describe(Fields& f, LionConfig& c) {
  f("beta1", c.beta1, between_below(0, 1), "weight of the momentum in the direction of the step");
  f("beta2", c.beta2, between_below(0, 1), "share of the momentum that is kept at every step");
  f("weight_decay", c.weight_decay, at_least(0),
    "decoupled decay of matrices: each step uses this value times the learning rate");
}

}  // namespace capstan
