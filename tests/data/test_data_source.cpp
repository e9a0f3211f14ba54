// What every source of data tells a run, through the one interface.
#include <algorithm>

#include "core/base/error.hpp"
#include "data/sources/data_config.hpp"
#include "support.hpp"

using namespace capstan;

namespace {

SourceInputs inputs() {
  SourceInputs inputs;
  inputs.batches.batch_size = 2;
  inputs.seed = 3;
  return inputs;
}

/// One small source of each type.
std::vector<SourceConfig> sources(const TemporaryFolder& folder) {
  TextSourceConfig text;
  text.train = {folder.write("a.txt", "one two\nthree\nfour five six\n")};
  text.test = {folder.write("b.txt", "seven\n")};
  text.valid_fraction = 0.25;
  text.sequence_length = 4;
  text.weights = {2};
  text.documents = LineDocumentsConfig{};
  LabelledSourceConfig labelled;
  labelled.train = {folder.write("t.tsv", "yes\ta b\nno\tc\nno\td e f\n")};
  labelled.valid_fraction = 0;
  labelled.max_length = 4;
  PairSourceConfig pairs;
  pairs.train = {folder.write("p.tsv", "a b\tc\nd\te f\na\tb\n")};
  pairs.valid_fraction = 0.3;
  pairs.max_length = 8, pairs.max_source = 4;
  return {text, labelled, pairs};
}

}  // namespace

TEST_CASE("sources: lines for the log") {
  const TemporaryFolder folder;
  const std::vector<std::string> descriptions = {
      R"(tokenizer: byte, 256 tokens
train: 1 files, 14 bytes, 14 tokens
train: a.txt: 14 tokens, weight 2: 2 windows (100.00 %) of an epoch, 1 passes
valid: 1 files, 14 bytes, 14 tokens
test: 1 files, 6 bytes, 6 tokens
)",
      R"(tokenizer: word, 2 tokens
train: 3 examples of 2 classes, 6 tokens, the longest 3
)",
      R"(tokenizer: word, 2 tokens
train: 2 pairs, 11 tokens; sources of 1 tokens in the median, 1 at most (0 cut to 4); targets of 1 in the median, 2 at most
valid: 1 pairs, 6 tokens; sources of 2 tokens in the median, 2 at most (0 cut to 4); targets of 1 in the median, 1 at most
)"};
  const std::vector<SourceConfig> all = sources(folder);
  REQUIRE(all.size() == descriptions.size());
  for (size_t i = 0; i < all.size(); ++i) {
    std::string text;
    for (const std::string& line : open_source(all[i], inputs())->description()) text += line + "\n";
    const std::string path = folder.path() + "/";
    if (const size_t at = text.find(path); at != std::string::npos) text.erase(at, path.size());
    CHECK(text == descriptions[i]);
  }
}

TEST_CASE("sources: splits, batches and what only text has") {
  const TemporaryFolder folder;
  for (const SourceConfig& config : sources(folder)) {
    CAPTURE(type_of(config));
    const auto source = open_source(config, inputs());
    const SourceFacts facts = facts_of(config);
    CHECK(source->has(Split::train));
    CHECK(source->classes().empty() == !facts.has_labels);
    CHECK(source->class_counts().size() == source->classes().size());
    const bool text = source->text_size(Split::train).has_value();
    CHECK(text == std::holds_alternative<TextSourceConfig>(config));
    for (const Split split : all_splits) {
      CAPTURE(to_string(split));
      if (!source->has(split)) {
        const std::string says =
            fmt::format("data: there is no {} split: give data.{}", to_string(split), to_string(split));
        CHECK(message_of<Error>([&] { source->evaluation(split); }).find(says) == 0);
        continue;
      }
      const auto batches = source->evaluation(split);
      int64_t examples = 0;
      for (int64_t i = 0; i < batches->batches_per_epoch(0); ++i) {
        const Batch batch = batches->batch(0, i);
        examples += batch.tokens.dim(0);
        CHECK(batch.tokens.dim(1) <= facts.longest);
        CHECK(batch.labels.rank() == (facts.has_labels ? 1 : 2));
        const std::vector<int32_t> ids = batch.tokens.to_vector();
        CHECK(*std::max_element(ids.begin(), ids.end()) < source->tokenizer().vocabulary_size() + facts.added_tokens);
      }
      CHECK(examples == batches->examples_per_epoch());
    }
  }
}

TEST_CASE("sources: the size of a held-out text in bytes and words") {
  const TemporaryFolder folder;
  const auto source = open_source(sources(folder).front(), inputs());
  CHECK(source->text_size(Split::test)->bytes == 6);
  CHECK(source->text_size(Split::test)->words == 2);  // "seven" and the end of its line
  CHECK_FALSE(source->text_size(Split::train)->words);
}

TEST_CASE("sources: tokenizer and classes of an earlier run") {
  const TemporaryFolder folder;
  LabelledSourceConfig config = std::get<LabelledSourceConfig>(sources(folder)[1]);
  config.classes = {"no", "yes"};
  const auto first = open_source(config, inputs());
  SourceInputs again = inputs();
  again.tokenizer = std::make_shared<ByteTokenizer>();
  again.classes = {"yes", "no"};
  const auto second = open_source(config, again);
  CHECK(first->classes() == std::vector<std::string>{"no", "yes"});
  CHECK(second->classes() == again.classes);
  CHECK(second->class_counts() == std::vector<int64_t>{1, 2});
  CHECK(&second->tokenizer() == again.tokenizer.get());
}

TEST_CASE("sources: the types that suit a model") {
  CHECK(source_types(true) == "labelled");
  CHECK(source_types(false) == "text or pairs");
}
