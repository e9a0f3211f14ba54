// How frozen tokenizers keep their Normalisation.
#pragma once

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "data/tokenizers/normalisation.hpp"

namespace capstan {

/// Only what is not the default is written: tokenizers of runs older than these keys keep their fingerprints.
inline void add_to_json(const Normalisation& rule, nlohmann::json& json) {
  if (rule.form != NormalForm::none) json["normalise"] = enum_name(rule.form);
  if (rule.case_fold) json["case_fold"] = true;
}

inline Normalisation normalisation_from(const nlohmann::json& json) {
  Normalisation rule;
  rule.case_fold = json.value("case_fold", false);
  const auto name = json.value("normalise", enum_name(NormalForm::none));
  for (const auto& known : enum_names(NormalForm{})) {
    if (name != known.name) continue;
    rule.form = known.value;
    return rule;
  }
  throw Error(fmt::format("unknown normal form '{}'", name));
}

}  // namespace capstan
