// Training commands with other keys, for the tests of runs that start from others.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/cli/support/samples.hpp"

namespace capstan::testing {

inline Words train_words(const std::string& config, const Words& overrides) {
  return Words{"train", "--config", config, "--set"} + overrides;
}

inline std::string model_of(const std::string& name, const std::string& checkpoint) {
  return "runs/" + name + "/checkpoints/" + checkpoint + "/model.safetensors";
}

inline void check_says(const Outcome& outcome, const std::vector<std::string>& says) {
  check_contains(outcome.err, says);
}

}  // namespace capstan::testing
