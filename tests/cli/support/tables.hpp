// A small table in the forms that people give it, and runs that read it.
#pragma once

#include "tests/cli/support/samples.hpp"

namespace capstan::testing {

/// The rows of a run that is trained on them, as a table with these columns.
inline std::string table(const Words& columns, char delimiter, bool header = true) {
  std::string text;
  const auto add_row = [&](const std::string& id, const std::string& content, const std::string& label) {
    for (size_t c = 0; c < columns.size(); ++c) {
      const std::string& name = columns[c];
      text += (c > 0 ? std::string(1, delimiter) : "") + (name == "id" ? id : name == "text" ? content : label);
    }
    text += '\n';
  };
  if (header) add_row("id", "text", "category");
  for (int i = 0; i < 30; ++i)
    i % 2 == 0 ? add_row(std::to_string(i), "a fine day", "good") : add_row(std::to_string(i), "sad night", "bad");
  return text;
}

constexpr const char* linear_yaml = R"(name: linear
data: {type: labelled, train: [pandas.csv], valid_fraction: 0.2}
model: {type: linear-classifier, words: [1, 2]}
train: {epochs: 1}
)";

constexpr const char* pairs_yaml = R"(name: pairs
data: {type: pairs, train: [qa.tsv], max_length: 32, max_source: 16, tokenizer: char}
model: {type: language-model, width: 16, max_length: 32, layers: [{mixer: {type: aft-simple}}]}
train: {steps: 2, batch_size: 4}
)";

}  // namespace capstan::testing
