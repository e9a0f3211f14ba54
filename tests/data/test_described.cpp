// The configuration structs of this room are described completely and sensibly.
#include <set>

#include "data/batcher.hpp"
#include "data/data_config.hpp"
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

template <class Config>
size_t described_fields() {
  Collect collect;
  Config config;
  describe(collect, config);
  return collect.names.size();
}

}  // namespace

TEST_CASE("every field is described once, with help and a default inside its limits") {
  CHECK(described_fields<TextSourceConfig>() == 12);
  CHECK(described_fields<LabelledSourceConfig>() == 15);
  CHECK(described_fields<ListOpsConfig>() == 9);
  CHECK(described_fields<BatchConfig>() == 2);
  CHECK(described_fields<ByteTokenizerConfig>() == 0);
  CHECK(described_fields<CharTokenizerConfig>() == 0);
  CHECK(described_fields<WordTokenizerConfig>() == 5);
}
