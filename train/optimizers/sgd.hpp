// Stochastic gradient descent with momentum.
#pragma once

#include <vector>

#include "core/config/schema.hpp"
#include "train/optimizers/update.hpp"

namespace capstan {

struct SgdConfig {
  static constexpr const char* type_name = "sgd";
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;

  static std::vector<StateSpec> states() { return {{"momentum"}}; }
  void update(const Update& update, std::vector<OptimizerState>& states) const;
};
template <class Fields>
void describe(Fields& f, SgdConfig& c) {
  f("momentum", c.momentum, between_below(0, 1), "share of the previous step that is added to the next one");
  f("nesterov", c.nesterov, any(), "use Nesterov momentum, which looks one step ahead");
  f("weight_decay", c.weight_decay, at_least(0), "decay of weight matrices, added to their gradient");
}

}  // namespace capstan
