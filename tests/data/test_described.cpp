// The configuration structs of this room are described completely and sensibly.
#include <set>

#include "data/batches/batcher.hpp"
#include "data/sources/data_config.hpp"
#include "support.hpp"

using namespace capstan;

namespace {

struct Collect {
  std::set<std::string> names;
  template <class T>
  void operator()(const char* name, T& field, const Constraint& constraint, const char* help) {
    CHECK_MESSAGE(names.insert(name).second, name);
    CHECK_MESSAGE(std::string(help).size() > 5, name);
    if constexpr (std::is_arithmetic_v<T>) {
      if (constraint.minimum) CHECK_MESSAGE(static_cast<double>(field) >= *constraint.minimum, name);
      if (constraint.maximum) CHECK_MESSAGE(static_cast<double>(field) <= *constraint.maximum, name);
    }
    if constexpr (std::is_enum_v<T>) CHECK_MESSAGE(enum_name(field) != "?", name);
  }
};

struct CollectProblems final : Problems {
  std::string paths;
  void add(const std::string& path, const std::string& message) override {
    CHECK(message.size() > 5);
    paths += path + ";";
  }
};

template <class Config>
std::string problems_of(const Config& config) {
  CollectProblems problems;
  validate(config, problems);
  return problems.paths;
}

template <class Config>
size_t described_fields() {
  Collect collect;
  Config config;
  describe(collect, config);
  return collect.names.size();
}

}  // namespace

TEST_CASE("every field is described once, with help and a default inside its limits") {
  CHECK(described_fields<TextSourceConfig>() == 17);
  CHECK(described_fields<LabelledSourceConfig>() == 23);
  CHECK(described_fields<BatchConfig>() == 2);
  CHECK(described_fields<ByteTokenizerConfig>() == 0);
  CHECK(described_fields<CharTokenizerConfig>() == 0);
  CHECK(described_fields<WordTokenizerConfig>() == 4);
  CHECK(described_fields<SentencePieceTokenizerConfig>() == 3);
}

TEST_CASE("rules that span several fields name the field") {
  TextSourceConfig text;
  CHECK(problems_of(text) == "");
  text.overlap = text.sequence_length;
  text.valid_fraction = text.test_fraction = 0.5;
  CHECK(problems_of(text) == "valid_fraction;overlap;");
  text.valid = {"given"};
  CHECK(problems_of(text) == "overlap;");
  text = TextSourceConfig();
  text.train = {"a", "b"};
  text.weights = {1, 0, 2};
  text.documents = FileDocumentsConfig{};
  CHECK(problems_of(text) == "weights;weights.1;split;");
  text.weights = {};
  text.valid = {"given"};
  CHECK(problems_of(text) == "");
  text.test_fraction = 0.1;
  CHECK(problems_of(text) == "split;");
  LabelledSourceConfig labelled;
  CHECK(problems_of(labelled) == "");
  labelled.folds = 5;
  labelled.fold = 5;
  CHECK(problems_of(labelled) == "fold;");
  labelled.folds = 1;
  labelled.fold = 0;
  CHECK(problems_of(labelled) == "folds;");
}
