// Tokenising and learning on several threads: the same ids, vocabularies and errors as on one.
#include <algorithm>
#include <tuple>

#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "core/machine/parallel.hpp"
#include "data/pairs/pair_source.hpp"
#include "data/text/text_source.hpp"
#include "tests/data/labelled/labelled_support.hpp"

using namespace capstan;

namespace {

/// What `make` gives on one thread, after checking that it gives the same on others.
template <class Make>
auto same_on_threads(const Make& make) {
  set_threads(1);
  const auto one = make();
  for (const int count : {2, 3, 7}) {
    set_threads(count);
    CHECK_MESSAGE(make() == one, count, " threads");
  }
  set_threads(0);
  return one;
}

const std::vector<std::string> ends = {" ", " ", " ", "  ", "\n", "\n\n", " <|> ", "\t"};

/// Words of few and many letters, accents that combine, blanks in a row, documents of every kind.
std::string random_text(RandomStream& random, size_t bytes) {
  std::string text;
  while (text.size() < bytes) {
    for (uint64_t i = random.below(9); i > 0; --i) text += static_cast<char>('a' + random.below(random.below(26) + 1));
    if (random.below(8) == 0) text += random.below(2) == 0 ? "\xe6\xbc\xa2\xc3\xa9" : "E\xcc\x81.";
    text += ends[random.below(ends.size())];
  }
  return text;
}

std::vector<TokenizerConfig> tokenizers() {
  WordTokenizerConfig blanks, words;
  words.split = WordSplit::words;
  words.lower_case = true;
  words.min_count = 2;
  words.max_size = 700;  // cuts through words that occur equally often
  SentencePieceTokenizerConfig pieces;
  pieces.vocabulary_size = 400;
  pieces.training_bytes = 20000;
  return {ByteTokenizerConfig{}, CharTokenizerConfig{}, blanks, words, pieces};
}

/// All that is known of the tokens of a text.
auto facts_of(const TextData& data) {
  std::vector<std::tuple<int64_t, int64_t, int64_t>> sizes;
  for (const Split split : all_splits) sizes.emplace_back(data[split].files, data[split].bytes, data[split].words);
  return std::make_tuple(data.tokenizer->to_json(), data.train.tokens.to_vector(), data.valid.tokens.to_vector(), sizes,
                         data.fingerprint);
}

}  // namespace

TEST_CASE("texts and their tokenizers are the same with any number of threads, in memory and from the cache") {
  const TemporaryFolder folder;
  RandomStream random({5, 6});
  const std::string text = random_text(random, 900'000);
  TextSourceConfig config;
  config.train = {folder.write("a.txt", text), folder.write("b.txt", "\n"),
                  folder.write("c.txt", std::string(600'000, 'x') + " <|> y"),  // no place to cut
                  folder.write("d.txt", random_text(random, 1000))};
  const std::string valid = folder.write("valid.txt", random_text(random, 2000));
  config.sequence_length = 16;
  const std::vector<DocumentsConfig> documents = {NoDocumentsConfig{}, FileDocumentsConfig{}, LineDocumentsConfig{},
                                                  BlankLineDocumentsConfig{}, MarkerDocumentsConfig{"<|>"}};
  size_t cut = 0;
  for (const TokenizerConfig& tokenizer : tokenizers()) {
    config.tokenizer = tokenizer;
    config.documents = documents[cut++ % documents.size()];
    config.valid.clear();
    if (std::holds_alternative<FileDocumentsConfig>(config.documents)) config.valid = {valid};  // no file is cut in two
    config.cache = "";
    const auto in_memory = same_on_threads([&] { return facts_of(loaded(config)); });
    const auto mapped = same_on_threads([&] {
      config.cache = folder.path("cache-" + std::to_string(cut) + "-" + std::to_string(threads()));
      return facts_of(loaded(config));
    });
    CHECK(mapped == in_memory);
  }
}

TEST_CASE("without documents, the tokens of a text are those of the whole, whatever the number of threads") {
  const TemporaryFolder folder;
  RandomStream random({7, 8});
  const std::string text = random_text(random, 1'300'000);
  TextSourceConfig config;
  config.train = {folder.write("a.txt", text)};
  config.valid_fraction = 0;
  config.cache = "";
  for (const TokenizerConfig& tokenizer : tokenizers()) {
    config.tokenizer = tokenizer;
    const TextData data = loaded(config);
    CHECK(data.train.tokens.to_vector() == data.tokenizer->encode(text));
  }
}

TEST_CASE("the first bad line of a text is named, or left out, with any number of threads") {
  const TemporaryFolder folder;
  RandomStream random({9, 1});
  std::string text = random_text(random, 700'000) + "\n";
  const auto line = 1 + std::count(text.begin(), text.end(), '\n');
  text += "bad \xff line\nmore\nbad \xc3\n" + random_text(random, 300'000) + "\nlast \xe2\x82";
  TextSourceConfig config;
  config.train = {folder.write("a.txt", text)};
  config.tokenizer = WordTokenizerConfig{};
  config.cache = "";
  const std::string message = same_on_threads([&] { return message_of<Error>([&] { loaded(config); }); });
  CHECK(contains(message, "a.txt:" + std::to_string(line) + ":5: "));
  config.on_error = OnError::skip;
  same_on_threads([&] { return facts_of(loaded(config)); });
}

TEST_CASE("labelled texts and pairs, and what is wrong with their rows, are the same with any number of threads") {
  const TemporaryFolder folder;
  RandomStream random({2, 3});
  std::string rows, pairs;
  for (int i = 0; i < 3000; ++i) {
    std::string text = "w" + random_text(random, random.below(600));
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
    rows += std::to_string(i % 3) + "\t" + (i % 500 == 400 ? "" : text) + "\n";
    pairs += text + "\tto " + std::to_string(i) + "\n";
  }
  LabelledSourceConfig labelled = config_of({folder.write("rows.tsv", rows)});
  labelled.tokenizer = WordTokenizerConfig{};
  labelled.on_error = OnError::skip;
  same_on_threads([&] {
    const ClassificationData data = load_labelled(labelled, nullptr, true);
    return std::make_tuple(data.tokenizer->to_json(), data.fingerprint(), data.left_out);
  });
  labelled.on_error = OnError::stop;
  const auto refused = [&] { return message_of<Error>([&] { load_labelled(labelled, nullptr, true); }); };
  CHECK(contains(same_on_threads(refused), "rows.tsv:401: "));
  labelled.max_length = 60;
  labelled.truncate = Truncate::error;
  CHECK(contains(same_on_threads(refused), "more than max_length = 60"));
  PairSourceConfig config;
  config.train = {folder.write("pairs.tsv", pairs)};
  config.max_length = 60;
  config.max_source = 57;
  const auto described = [&] {
    SourceInputs inputs;
    const auto source = make_source(config, inputs);
    return std::make_tuple(source->identity(), source->left_out());
  };
  CHECK(contains(same_on_threads([&] { return message_of<Error>(described); }), "more than max_length = 60"));
  config.on_error = OnError::skip;
  CHECK(std::get<1>(same_on_threads(described)).size() == 1);
}
