// What the tests of labelled texts share.
#pragma once

#include "data/labelled/labelled_source.hpp"
#include "tests/data/support.hpp"

namespace capstan {

using Fields = std::vector<std::string>;

/// Nothing is held out; tokens are bytes.
inline LabelledSourceConfig config_of(std::vector<std::string> train) {
  LabelledSourceConfig config;
  config.train = std::move(train);
  config.valid_fraction = 0;
  config.tokenizer = ByteTokenizerConfig{};
  return config;
}

inline std::string text_of(const ClassificationData& data, const ExampleSet& examples, int64_t i) {
  return data.tokenizer->decode(examples.tokens(i));
}

}  // namespace capstan
