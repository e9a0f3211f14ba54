// The optimizers a run can choose from: the one list of them.
//
// An optimizer is a struct of its settings with
//   static constexpr const char* type_name;          the `type` in a configuration
//   static std::vector<StateSpec> states();          what it keeps between steps
//   void update(const Update&, std::vector<OptimizerState>& states) const;
// and a describe() beside it. update() changes the values, sets the gradients it has used to zero, all of them once, and
// leaves rows of tables without a gradient alone. Optimizer, checkpoints, the configuration and its documentation follow.
#pragma once

#include <variant>

#include "train/optimizers/adamw.hpp"
#include "train/optimizers/lion.hpp"
#include "train/optimizers/muon.hpp"
#include "train/optimizers/sgd.hpp"

namespace capstan {

using OptimizerConfig = std::variant<AdamWConfig, SgdConfig, LionConfig, MuonConfig>;

}  // namespace capstan
