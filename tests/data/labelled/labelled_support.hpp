// What the tests of labelled texts share.
#pragma once

#include <sstream>

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

/// Sets one key of a configuration from text, as --set does: a list is divided at its commas, a tokenizer is named.
class KeySetter {
 public:
  KeySetter(std::string key, std::string value) : key_(std::move(key)), value_(std::move(value)) {}
  template <class T>
  void operator()(const char* name, T& field, const Constraint&, const char*) {
    if (key_ != name) return;
    read(field);
    known_ = true;
  }
  bool known() const { return known_; }

 private:
  void read(bool& field) const { field = value_ == "true"; }
  void read(int64_t& field) const { field = std::stoll(value_); }
  void read(double& field) const { field = std::stod(value_); }
  void read(std::string& field) const { field = value_ == "blank" ? " " : value_; }
  void read(Fields& field) const { field = split_list(value_); }
  void read(Truncate& field) const { field = *enum_value<Truncate>(value_); }
  void read(OnError& field) const { field = *enum_value<OnError>(value_); }
  void read(TokenizerConfig& field) const {
    if (value_ == "char") field = CharTokenizerConfig{};
    if (value_ == "word") field = WordTokenizerConfig{};
  }
  template <class T>
  void read(std::optional<T>& field) const {
    read(field.emplace());
  }
  static Fields split_list(const std::string& text) {
    Fields parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
    return parts;
  }

  std::string key_, value_;
  bool known_ = false;
};

/// The configuration with "header=true text_columns=2,3" and the like.
inline LabelledSourceConfig with_keys(LabelledSourceConfig config, const std::string& keys) {
  std::istringstream stream(keys);
  for (std::string word; stream >> word;) {
    const size_t equals = word.find('=');
    KeySetter setter(word.substr(0, equals), word.substr(equals + 1));
    describe(setter, config);
    CHECK_MESSAGE(setter.known(), word);
  }
  return config;
}

inline std::string problems_of(const LabelledSourceConfig& config) {
  ProblemText problems("data");
  validate(config, problems);
  return problems.text();
}

inline std::string text_of(const ClassificationData& data, const ExampleSet& examples, int64_t i) {
  return data.tokenizer->decode(examples.tokens(i));
}

inline Fields texts_of(const ClassificationData& data, const ExampleSet& examples) {
  Fields texts;
  for (int64_t i = 0; i < examples.size(); ++i) texts.push_back(text_of(data, examples, i));
  return texts;
}

}  // namespace capstan
