#include "parity.hpp"

#include "core/base/random.hpp"
#include "data/batches/example_source.hpp"
#include "data/tokenizers/tokenizer.hpp"

namespace capstan {
namespace {

ExampleSet make_split(const ParityConfig& config, Split split, int64_t count) {
  RandomStream random(random_key(static_cast<uint64_t>(config.seed), to_string(split)));
  ExampleSet examples;
  std::vector<int32_t> bits(static_cast<size_t>(config.length));
  for (int64_t i = 0; i < count; ++i) {
    int32_t sum = 0;
    for (int32_t& bit : bits) {
      bit = '0' + static_cast<int32_t>(random.below(2));
      sum += bit - '0';
    }
    examples.add(bits, sum % 2);
  }
  return examples;
}

}  // namespace

SourceFacts facts(const ParityConfig& config) {
  SourceFacts facts;
  facts.has_labels = true;
  facts.longest = config.length;
  facts.longest_key = "length";
  return facts;
}

std::unique_ptr<DataSource> make_source(const ParityConfig& config, const SourceInputs& inputs) {
  ClassificationData data;
  data.classes = {"even", "odd"};
  data.tokenizer = std::make_shared<ByteTokenizer>();
  data.train = make_split(config, Split::train, config.train);
  data.valid = make_split(config, Split::valid, config.valid);
  data.test = make_split(config, Split::test, config.test);
  return std::make_unique<ExampleSource>(std::move(data), inputs, settings_of(config),
                                         std::vector<std::string>{"train", "valid", "test"});
}

}  // namespace capstan
