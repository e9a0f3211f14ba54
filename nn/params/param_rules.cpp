#include "nn/params/param_rules.hpp"

#include <algorithm>

#include "core/strings/pattern.hpp"
#include "core/strings/strings.hpp"

namespace capstan {

bool is_frozen(const ParamRules& rules, const std::string& name) {
  return std::any_of(rules.freeze.begin(), rules.freeze.end(),
                     [&](const std::string& pattern) { return matches(name, pattern); });
}

int64_t block_of(const std::string& name) {
  constexpr std::string_view start = "blocks.";
  if (!starts_with(name, start)) return -1;
  const size_t end = name.find('.', start.size());
  const std::string digits = end == std::string::npos ? "" : name.substr(start.size(), end - start.size());
  if (digits.empty() || digits.size() > 9 || digits.find_first_not_of("0123456789") != std::string::npos) return -1;
  return std::stoll(digits);
}

double lr_factor(const ParamRules& rules, const std::string& name, int64_t blocks) {
  double factor = 1;
  for (const RateRule& rule : rules.lr_scale) {
    if (!matches(name, rule.match)) continue;
    factor = rule.factor;
    break;
  }
  if (rules.layer_decay == 1) return factor;
  const int64_t block = block_of(name);
  const std::string first = name.substr(0, name.find('.'));
  const bool precedes = first == "embed" || first == "positions" || first == "embed_norm" || first == "ngram_embedding";
  const int64_t depth = block >= 0 ? blocks - block : precedes ? blocks + 1 : 0;
  for (int64_t i = 0; i < depth; ++i) factor *= rules.layer_decay;  // exact for powers of two
  return factor;
}

}  // namespace capstan
