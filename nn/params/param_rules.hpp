// What training does with parameters, by patterns of their names (core/strings/pattern.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace capstan {

/// The learning rate of the parameters that match, as a multiple of the others'.
struct RateRule {
  std::string match;
  double factor = 1;
};

struct ParamRules {
  std::vector<std::string> freeze;  // constants: no gradient, no optimizer state
  std::vector<RateRule> lr_scale;   // the first rule that matches a parameter counts
  /// Discriminative rates (Howard and Ruder 2018, arXiv 1801.06146; Clark et al. 2020, arXiv 2003.10555). Of n blocks,
  /// the rates of block i are multiplied by layer_decay^(n - i); those of what precedes the blocks, by
  /// layer_decay^(n + 1).
  double layer_decay = 1;
};

bool is_frozen(const ParamRules& rules, const std::string& name);
/// The model has this many blocks.
double lr_factor(const ParamRules& rules, const std::string& name, int64_t blocks);
/// N of blocks.N.rest; -1 for other names.
int64_t block_of(const std::string& name);

}  // namespace capstan
