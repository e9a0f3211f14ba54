#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <sstream>

#include "core/base/error.hpp"
#include "data/text/text_source.hpp"
#include "data/text/text_windows.hpp"
#include "support.hpp"

using namespace capstan;

namespace {

TextSourceConfig text_config(std::vector<std::string> train) {
  TextSourceConfig config;
  config.train = std::move(train);
  return config;
}

/// Token i of the corpus is i, so that windows show where they come from.
TextCorpus counting_corpus(int64_t size) {
  TextCorpus corpus;
  std::vector<int32_t> tokens(static_cast<size_t>(size));
  std::iota(tokens.begin(), tokens.end(), 0);
  corpus.tokens.append(tokens);
  return corpus;
}

std::vector<Batch> epoch_batches(const BatchSource& source, int64_t epoch) {
  std::vector<Batch> batches;
  for (int64_t i = 0; i < source.batches_per_epoch(epoch); ++i) batches.push_back(source.batch(epoch, i));
  return batches;
}

}  // namespace

TEST_CASE("tail: every file's end is held out, by bytes") {
  const TemporaryFolder folder;
  folder.write("a", "0123456789");
  folder.write("b", "abcdefghijklmnopqrst");
  TextSourceConfig config = text_config({folder.path()});
  config.valid_fraction = 0.1;
  config.test_fraction = 0.2;
  const TextData data = loaded(config);
  const auto text = [&](const TextCorpus& corpus) { return data.tokenizer->decode(corpus.tokens.to_vector()); };
  CHECK(text(data.train) == "0123456abcdefghijklmn");
  CHECK(text(data.valid) == "7op");
  CHECK(text(data.test) == "89qrst");
  CHECK(data.valid.bytes == 3);
  CHECK(data.valid.files == 2);
}

TEST_CASE("tail: 90/5/5 of one file are exactly its first 90, next 5 and last 5 hundredths, in that order") {
  const TemporaryFolder folder;
  for (const size_t hundredth : {1, 3, 10, 12345}) {
    std::string text;
    while (text.size() < 100 * hundredth) text.push_back(static_cast<char>('a' + text.size() * 7 % 26));
    TextSourceConfig config = text_config({folder.write("enwik", text)});
    config.valid_fraction = config.test_fraction = 0.05;
    const TextData data = loaded(config);
    CHECK(data.tokenizer->decode(data.train.tokens.to_vector()) == text.substr(0, 90 * hundredth));
    CHECK(data.tokenizer->decode(data.valid.tokens.to_vector()) == text.substr(90 * hundredth, 5 * hundredth));
    CHECK(data.tokenizer->decode(data.test.tokens.to_vector()) == text.substr(95 * hundredth));
  }
}

TEST_CASE("tail: no character and no word is cut") {
  const TemporaryFolder folder;
  const std::string text = "\xc3\xa9\xc3\xa9\xc3\xa9 two three\n";
  TextSourceConfig config = text_config({folder.write("a", text)});
  for (const TokenizerConfig& tokenizer :
       {TokenizerConfig(CharTokenizerConfig{}), TokenizerConfig(WordTokenizerConfig{})})
    for (const double fraction : {0.1, 0.2, 0.45, 0.5}) {
      config.tokenizer = tokenizer;
      config.valid_fraction = fraction;
      const TextData data = loaded(config);
      CHECK(data.train.bytes + data.valid.bytes == static_cast<int64_t>(text.size()));
      CHECK(data.train.bytes <= static_cast<int64_t>(text.size() * (1 - fraction)));
      std::vector<int32_t> joined = data.train.tokens.to_vector();
      const std::vector<int32_t> valid = data.valid.tokens.to_vector();
      joined.insert(joined.end(), valid.begin(), valid.end());
      CHECK(joined == data.tokenizer->encode(text));
    }
}

TEST_CASE("by-file: whole files are held out by a hash of their name, wherever the folder is") {
  const auto held_out = [](const TemporaryFolder& folder) {
    TextSourceConfig config = text_config({folder.path()});
    config.split = TextSplit::by_file;
    config.test_fraction = 0.05;
    for (int i = 0; i < 40; ++i) folder.write("sub/" + std::to_string(i), "text " + std::to_string(i));
    const TextData data = loaded(config);
    CHECK(data.train.files == 34);
    CHECK(data.valid.files == 4);
    CHECK(data.test.files == 2);
    std::set<std::string> texts;
    const auto texts_of = [&](const TextCorpus& corpus) {
      std::string text = data.tokenizer->decode(corpus.tokens.to_vector());
      for (size_t at = 0, end = 0; at < text.size(); at = end) {
        end = std::min(text.find("text", at + 1), text.size());
        CHECK(texts.insert(text.substr(at, end - at)).second);
      }
      return text;
    };
    texts_of(data.train);
    texts_of(data.test);
    std::string valid = texts_of(data.valid);
    CHECK(texts.size() == 40);
    return valid;
  };
  const TemporaryFolder first, second;
  const std::string texts = held_out(first);
  CHECK(texts == held_out(second));
  CHECK(texts != "text 0text 1text 10text 11");
}

TEST_CASE("given validation and test files are taken whole; the vocabulary is that of the training text") {
  const TemporaryFolder folder;
  TextSourceConfig config = text_config({folder.write("train", "abab")});
  config.valid = {folder.write("valid", "abc")};
  config.test = {write_gzip(folder, "test.gz", "cba")};
  config.tokenizer = CharTokenizerConfig{};
  const TextData data = loaded(config);
  CHECK(data.train.tokens.to_vector() == std::vector<int32_t>{1, 2, 1, 2});
  CHECK(data.valid.tokens.to_vector() == std::vector<int32_t>{1, 2, 0});
  CHECK(data.test.tokens.to_vector() == std::vector<int32_t>{0, 2, 1});
  const TextData again =
      loaded(text_config({folder.write("other", "bbbbbbbbbbbbb")}), data.tokenizer);  // a run's tokenizer
  CHECK(again.tokenizer == data.tokenizer);
  CHECK(again.train.tokens[0] == 2);
  CHECK(again.fingerprint != data.fingerprint);
  CHECK(loaded(config).fingerprint == data.fingerprint);
}

TEST_CASE("lines that are not UTF-8 are named together, or left out and counted") {
  const TemporaryFolder folder;
  TextSourceConfig config =
      text_config({folder.write("a.txt", "one\ntw\xff\nthree\n\xe9\n"), folder.write("b.txt", "four\n\xff")});
  config.tokenizer = CharTokenizerConfig{};
  config.valid_fraction = 0;
  const std::string message = message_of<Error>([&] { loaded(config); });
  check_contains(message, {"a.txt:2:3: byte 0xff", "a.txt:4:1: byte 0xe9", "b.txt:2:1: byte 0xff",
                           "data: 3 lines cannot be used: correct them, or leave them out with data.on_error: skip"});
  config.on_error = OnError::skip;
  const TextData data = loaded(config);
  CHECK(data.tokenizer->decode(data.train.tokens.to_vector()) == "one\nthree\nfour\n");
  CHECK(data.train.bytes == 15);
  REQUIRE(data.left_out.size() == 1);
  CHECK(contains(data.left_out[0], "data: 3 lines left out (on_error: skip), the first: "));
  config.tokenizer = ByteTokenizerConfig{};
  CHECK(loaded(config).left_out.empty());
  CHECK(loaded(config).train.bytes == 22);
}

TEST_CASE(
    "words of held-out text are counted as WikiText does, in packed files, between bad lines and with documents") {
  const auto words = [](const std::string& text) {
    int64_t count = 0;
    std::istringstream stream(text);
    for (std::string word; stream >> word;) ++count;
    return count + std::count(text.begin(), text.end(), '\n');
  };
  std::string large;  // a word lies across each block in which it is read
  for (int i = 0; large.size() < 2'500'000; ++i) large += std::to_string(i) + (i % 7 == 0 ? "\t\n" : " ");
  for (const std::string& text : {std::string("one"), std::string(" a  b\n\n\tc\r\nd "), std::string("\n"), large}) {
    const TemporaryFolder folder;
    TextSourceConfig config = text_config({folder.write("train", "some text\n")});
    config.valid = {folder.write("valid", text)};
    config.test = {write_gzip(folder, "test.gz", text)};
    for (const bool documents : {false, true}) {
      if (documents) config.documents = LineDocumentsConfig{};
      if (documents && text == "\n") continue;  // no document
      const TextData data = loaded(config);
      CHECK(data.valid.words == words(text));
      CHECK(data.test.words == words(text));
    }
  }
  const TemporaryFolder folder;
  TextSourceConfig config = text_config({folder.write("train", "some text\n")});
  config.valid = {folder.write("valid", "one two\nbad \xff\nthree\n")};
  config.tokenizer = WordTokenizerConfig{};
  config.on_error = OnError::skip;
  CHECK(loaded(config).valid.words == 5);
}

TEST_CASE("UTF-16 without a mark is refused, but read as bytes; compressed text is refused") {
  const TemporaryFolder folder;
  std::string wide;
  for (const char c : std::string("a fine day\n")) wide += std::string(1, '\0') + c;
  for (const auto& [content, said] : {std::pair<std::string, const char*>{wide, "is UTF-16BE, not UTF-8; convert it"},
                                      {"\x1f\x8b\x08 packed text", "is compressed (gzip); unpack it with gzip -dc"},
                                      {"\x28\xb5\x2f\xfd packed", "is compressed (zstd); unpack it with zstd -dc"}}) {
    TextSourceConfig config = text_config({folder.write("a.txt", content)});
    config.tokenizer = CharTokenizerConfig{};
    config.valid_fraction = 0;
    config.on_error = OnError::skip;
    CHECK(contains(message_of<Error>([&] { loaded(config); }), "a.txt: " + std::string(said)));
    config.tokenizer = ByteTokenizerConfig{};
    if (content == wide)
      CHECK(loaded(config).train.bytes == static_cast<int64_t>(content.size()));
    else
      CHECK(contains(message_of<Error>([&] { loaded(config); }), "a.txt: " + std::string(said)));
  }
}

TEST_CASE("text that cannot be used is named with the remedy") {
  const TemporaryFolder folder;
  folder.write("binary/a", std::string("a\0b", 3));
  const std::string latin = folder.write("latin.txt", "caf\xe9 au lait");
  struct Row {
    const char* what;
    std::string message;
    std::function<void(TextSourceConfig&)> change;
  };
  const std::vector<Row> rows = {
      {"missing", "none.txt: no such file", [&](auto& c) { c.train = {folder.path("none.txt")}; }},
      {"folder without text", "binary: the folder holds no text", [&](auto& c) { c.train = {folder.path("binary")}; }},
      {"empty", "empty.txt: the file is empty", [&](auto& c) { c.train = {folder.write("empty.txt", "")}; }},
      {"char", "latin.txt:1:4: byte 0xe9", [&](auto& c) { c.tokenizer = CharTokenizerConfig{}; }},
      {"word", "latin.txt:1:4: byte 0xe9", [&](auto& c) { c.tokenizer = WordTokenizerConfig{}; }},
      {"by-file of one", "leaves none to train on", [&](auto& c) { c.split = TextSplit::by_file; }},
      {"fractions", "data.valid_fraction: together with test_fraction it leaves no training text",
       [&](auto& c) { c.valid_fraction = c.test_fraction = 0.5; }},
      {"overlap", "must be less than sequence_length", [&](auto& c) { c.overlap = c.sequence_length; }},
      {"blank tail", "too little to validate on; raise valid_fraction",
       [&](auto& c) {
         c.train = {folder.write("blank.txt", "word    ")};
         c.tokenizer = WordTokenizerConfig{};
       }},
      {"one word", "no text is left to train on", [&](auto& c) {
         c.train = {folder.write("word.txt", "word")};
         c.tokenizer = WordTokenizerConfig{};
       }}};
  for (const Row& row : rows) {
    TextSourceConfig config = text_config({latin});
    row.change(config);
    const std::string message = message_of<Error>([&] { loaded(config); });
    CHECK_MESSAGE(contains(message, row.message), row.what, ": ", message);
  }
  CHECK_NOTHROW(loaded(text_config({latin})));                    // bytes may be anything
  CHECK_NOTHROW(loaded(text_config({folder.path("binary/a")})));  // a file named on its own as well
}

TEST_CASE("the label of a position is the token after its own") {
  const TextCorpus corpus = counting_corpus(1000);
  for (const WindowRule rule : {WindowRule::contiguous, WindowRule::random}) {
    const TrainingWindows windows(corpus, {16, rule, 3}, {4, 0});
    for (const Batch& batch : epoch_batches(windows, 2))
      for (int64_t i = 0; i < batch.tokens.size(); ++i) {
        CHECK(batch.labels[i] == batch.tokens[i] + 1);
        CHECK(batch.segment_ids[i] == 1);
        if (i % 16 != 0) CHECK(batch.tokens[i] == batch.tokens[i - 1] + 1);
      }
  }
}

TEST_CASE("an epoch visits every window once, from another offset each time") {
  const TextCorpus corpus = counting_corpus(1003);
  const TrainingWindows windows(corpus, {16, WindowRule::contiguous, 3}, {4, 0});
  CHECK(windows.examples_per_epoch() == 61);  // 62 fit
  CHECK(windows.batches_per_epoch(0) == 16);
  std::set<int64_t> offsets;
  std::set<std::vector<int64_t>> orders;
  for (int64_t epoch = 0; epoch < 40; ++epoch) {
    std::vector<int64_t> begins;
    std::vector<int32_t> places;
    for (const Batch& batch : epoch_batches(windows, epoch)) {
      for (int64_t row = 0; row < batch.tokens.dim(0); ++row) begins.push_back(batch.tokens[row * 16]);
      const auto examples = batch.examples.to_vector();
      places.insert(places.end(), examples.begin(), examples.end());
    }
    for (size_t i = 0; i < places.size(); ++i) CHECK(places[i] == static_cast<int32_t>(i));
    orders.insert(begins);
    std::sort(begins.begin(), begins.end());
    REQUIRE(begins.size() == 61);
    CHECK(begins.front() < 16);
    for (size_t i = 1; i < begins.size(); ++i) CHECK(begins[i] == begins[i - 1] + 16);
    CHECK(begins.back() + 16 <= 1002);
    offsets.insert(begins.front());
  }
  CHECK(offsets.size() > 10);
  CHECK(orders.size() == 40);
}

TEST_CASE("the shortest texts that make a window, and one that does not") {
  for (int64_t size = 17; size < 60; ++size) {
    const TextCorpus corpus = counting_corpus(size);
    for (const WindowRule rule : {WindowRule::contiguous, WindowRule::random}) {
      const TrainingWindows windows(corpus, {16, rule, 0}, {2, 0});
      for (int64_t epoch = 0; epoch < 30; ++epoch)
        for (int64_t place = 0; place < windows.examples_per_epoch(); ++place) {
          const int64_t begin = windows.window_begin(epoch, place);
          CHECK(begin >= 0);
          CHECK(begin + 17 <= size);
        }
    }
  }
  const TextCorpus corpus = counting_corpus(16);
  CHECK(contains(message_of<Error>([&] {
                   TrainingWindows(corpus, {16, WindowRule::contiguous, 0}, {});
                 }),
                 "16 tokens, but one example needs 17"));
}

TEST_CASE("training windows are a pure function of seed, epoch and index") {
  const TextCorpus corpus = counting_corpus(2000);
  for (const WindowRule rule : {WindowRule::contiguous, WindowRule::random}) {
    const TrainingWindows first(corpus, {16, rule, 5}, {4, 0}), second(corpus, {16, rule, 5}, {4, 0}),
        other(corpus, {16, rule, 6}, {4, 0});
    const Batch wanted = first.batch(7, 11);
    for (int64_t i = 0; i < 5; ++i) second.batch(i, 3 * i);
    CHECK(equal(second.batch(7, 11), wanted));
    CHECK_FALSE(equal(other.batch(7, 11), wanted));
    CHECK_FALSE(equal(first.batch(8, 11), wanted));
    CHECK_THROWS_AS(first.batch(0, first.batches_per_epoch(0)), std::invalid_argument);
    CHECK_THROWS_AS(first.batch(0, -1), std::invalid_argument);
    for (const int64_t index : {int64_t{0}, int64_t{11}, first.batches_per_epoch(2) - 1}) check_rows(first, 2, index);
  }
  CHECK(TrainingWindows(corpus, {16, WindowRule::contiguous, 5}, {4, 100}).batch(0, 0).tokens.shape() == Shape{6, 16});
}

TEST_CASE("evaluation windows make every token the label of exactly one position") {
  const TextCorpus corpus = counting_corpus(121);
  constexpr int32_t start = 500;
  for (const int64_t overlap : {0, 5, 15}) {
    const EvaluationWindows windows(corpus, {16, start, overlap}, {3, 0});
    std::map<int32_t, int> seen;
    std::set<int32_t> numbers;
    int64_t last_width = 16;
    for (const Batch& batch : epoch_batches(windows, 0)) {
      const int64_t width = batch.tokens.dim(1);
      CHECK(width <= last_width);
      last_width = width;
      for (int64_t row = 0; row < batch.tokens.dim(0); ++row) {
        CHECK(numbers.insert(batch.examples[row]).second);
        for (int64_t t = 0; t < width; ++t) {
          const int32_t token = batch.tokens[row * width + t], label = batch.labels[row * width + t];
          if (batch.segment_ids[row * width + t] == 0) {
            CHECK(token == 0);
            CHECK(label == ignored_target);
          } else if (label != ignored_target) {
            ++seen[label];
            CHECK(token == (label == 0 ? start : label - 1));
            if (label >= 16) CHECK(t >= overlap);  // as much context as was asked for
          } else {
            CHECK(t < overlap);
          }
        }
      }
    }
    CHECK(seen.size() == 121);
    for (const auto& entry : seen) CHECK(entry.second == 1);
    CHECK(static_cast<int64_t>(numbers.size()) == windows.examples_per_epoch());
  }
  CHECK_THROWS_AS(EvaluationWindows(corpus, {16, 0, 16}, {}), std::invalid_argument);
}

TEST_CASE("some windows of a long text come from all over it, and the same ones every time") {
  const TextCorpus corpus = counting_corpus(10'000);
  EvaluationWindows::Options options{16, 20'000, 0};
  CHECK(EvaluationWindows(corpus, options, {3, 0}).counted_tokens() == 10'000);
  options.max_tokens = 10'000;
  CHECK(EvaluationWindows(corpus, options, {3, 0}).examples_per_epoch() == 625);
  options.max_tokens = 1000;
  const EvaluationWindows windows(corpus, options, {3, 0}), again(corpus, options, {3, 0});
  CHECK(windows.counted_tokens() == 63 * 16);
  std::set<int32_t> labels, tenths;
  const std::vector<Batch> batches = epoch_batches(windows, 0), same = epoch_batches(again, 0);
  for (size_t i = 0; i < batches.size(); ++i) {
    std::set<int32_t> thirds;
    for (int64_t at = 0; at < batches[i].labels.size(); ++at) {
      const int32_t label = batches[i].labels[at];
      CHECK(label == same.at(i).labels[at]);
      CHECK(labels.insert(label).second);
      tenths.insert(label / 1000);
      thirds.insert(label / 3334);
    }
    CHECK(thirds.size() == 3);  // its rows
  }
  CHECK(labels.size() == 63 * 16);
  CHECK(tenths.size() == 10);
}

TEST_CASE("a quick validation reads no token twice, and says so of a long text that it reads a part of") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 60'000; ++i) text += std::to_string(i) + ' ';
  TextSourceConfig config = text_config({folder.write("train.txt", std::string(500, 'a'))});
  config.valid = {folder.write("valid.txt", text)};
  config.cache = "";
  config.sequence_length = 100;
  config.overlap = 50;
  const auto count = [&](const BatchSource& source) {
    int64_t tokens = 0;
    for (const Batch& batch : epoch_batches(source, 0)) tokens += batch.tokens.size();
    return tokens;
  };
  const auto bytes = static_cast<int64_t>(text.size());
  const auto full = make_source(config, {});
  CHECK(count(*full->validation()) == count(*full->evaluation(Split::valid)));
  config.validation = ValidationRule::quick;
  const auto quick = make_source(config, {});
  CHECK(count(*quick->evaluation(Split::valid)) > 2 * bytes - 200);
  CHECK(std::abs(count(*quick->validation()) - 250'000) <= 100);
  CHECK(quick->identity() == full->identity());
  const auto says = [](const DataSource& source) {
    const std::vector<std::string> lines = source.description();
    return std::any_of(lines.begin(), lines.end(),
                       [](const std::string& line) { return contains(line, "data.validation: quick"); });
  };
  CHECK(says(*quick));
  CHECK(!says(*full));
}
