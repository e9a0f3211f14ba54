// A configuration with every kind of field, for the targets that read YAML.
#pragma once

#include "data/text/text_config.hpp"
#include "run/yaml/config.hpp"
#include "tests/fuzz/target.hpp"

namespace capstan::fuzz {

struct Layer {
  double rate = 0.5;
  std::optional<int64_t> width;
  TokenizerConfig tokenizer = ByteTokenizerConfig{};
};
template <class Fields>
void describe(Fields& f, Layer& c) {
  f("rate", c.rate, between_below(0, 1), "a share");
  f("width", c.width, at_least(1), "a number or nothing");
  f("tokenizer", c.tokenizer, any(), "a variant");
}

struct AnyRun {
  std::string name;
  bool flag = true;
  TextSourceConfig data;
  std::vector<Layer> layers = {Layer{}};
  std::vector<double> weights;
};
template <class Fields>
void describe(Fields& f, AnyRun& c) {
  f("name", c.name, any(), "text");
  f("flag", c.flag, any(), "a flag");
  f("data", c.data, any(), "a struct");
  f("layers", c.layers, any(), "a list of structs");
  f("weights", c.weights, any(), "a list of numbers");
}

/// Throws ConfigError; what was read is written, and read as the same.
inline void read_run(const ConfigNode& tree, ProblemList& problems) {
  const auto run = read_config<AnyRun>(tree, problems);
  const std::string written = to_yaml(run);
  ProblemList none;
  const auto again = must("a configuration that was written is read", [&] {
    return read_config<AnyRun>(load_tree_from_text(to_node(AnyRun{}), written, "written", none), none);
  });
  require(to_yaml(again) == written, "a configuration that was written is read as the same");
}

}  // namespace capstan::fuzz
