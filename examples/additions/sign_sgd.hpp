// Moves each weight by the learning rate, against the sign of the gradient. Bernstein et al. 2018, arXiv 1802.04434.
#pragma once

#include <vector>

#include "core/config/schema.hpp"
#include "train/optimizers/update.hpp"

namespace capstan {

struct SignSgdConfig {
  static constexpr const char* type_name = "sign-sgd";
  double momentum = 0.9;

  static std::vector<StateSpec> states() { return {{"momentum"}}; }
  void update(const Update& update, std::vector<OptimizerState>& states) const;
};
template <class Fields>
void describe(Fields& f, SignSgdConfig& c) {
  f("momentum", c.momentum, between_below(0, 1), "share of the mean gradient that is kept at every step");
}

}  // namespace capstan
