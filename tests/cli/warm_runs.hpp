// Training commands with other keys, for the tests of runs that start from others.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/cli/samples.hpp"

namespace capstan::testing {

using Words = std::vector<std::string>;

inline Words train_words(const std::string& config, const Words& overrides) {
  Words words{"train", "--config", config, "--set"};
  words.insert(words.end(), overrides.begin(), overrides.end());
  return words;
}

inline std::string model_of(const std::string& name, const std::string& checkpoint) {
  return "runs/" + name + "/checkpoints/" + checkpoint + "/model.safetensors";
}

inline Words joined(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline void check_says(const Outcome& outcome, const Words& says) {
  for (const std::string& part : says) CHECK_MESSAGE(contains(outcome.err, part), part, " in ", outcome.err);
}

}  // namespace capstan::testing
