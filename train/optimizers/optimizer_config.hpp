// The optimizers a run can choose from: the one list of them.
//
// An optimizer is a struct of its settings with
//   static constexpr const char* type_name;          the `type` in a configuration
//   static std::vector<StateSpec> states();          what it keeps between steps
//   void update(const Update&, std::vector<OptimizerState>& states) const;
// and a describe() beside it. update() changes all values, sets all gradients to zero, and leaves rows without a
// gradient alone in tables that are updated by rows. Optimizer, checkpoints, the configuration and its documentation
// follow.
#pragma once

#include <variant>

#include "train/optimizers/adamw.hpp"
#include "train/optimizers/custom_optimizer.hpp"
#include "train/optimizers/lion.hpp"
#include "train/optimizers/muon.hpp"
#include "train/optimizers/sgd.hpp"

namespace capstan {

using OptimizerConfig = std::variant<AdamWConfig, SgdConfig, LionConfig, MuonConfig, CustomOptimizerConfig>;

}  // namespace capstan
