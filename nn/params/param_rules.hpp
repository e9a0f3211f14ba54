// Rules by which training freezes parameters or scales their rates: patterns of names (core/strings/pattern.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace capstan {

/// Parameters whose names match the pattern `match` have `factor` times the optimizer's learning rate.
struct RateRule {
  std::string match;
  double factor = 1;
};

/// The configuration's train.freeze, train.lr_scale and train.layer_decay. They do not change initial values.
struct ParamRules {
  std::vector<std::string> freeze;  // constants: no gradient, no optimizer state
  std::vector<RateRule> lr_scale;   // the first rule that matches a parameter counts
  /// Discriminative rates (Howard and Ruder 2018, arXiv 1801.06146; Clark et al. 2020, arXiv 2003.10555). Of n blocks,
  /// block i has layer_decay^(n - i) times the learning rate; the embeddings and all else in front of the blocks have
  /// layer_decay^(n + 1) times the rate.
  double layer_decay = 1;
};

bool is_frozen(const ParamRules& rules, const std::string& name);
/// The factor of the parameter's learning rate in a model of `blocks` blocks.
double lr_factor(const ParamRules& rules, const std::string& name, int64_t blocks);
/// The block that a parameter belongs to by its name: N of "blocks.N.rest"; -1 for other names.
int64_t block_of(const std::string& name);

}  // namespace capstan
