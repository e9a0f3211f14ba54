#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "data/text/text_source.hpp"
#include "data/tokenizers/sentencepiece_tokenizer.hpp"
#include "sentencepiece_support.hpp"

using namespace capstan;

namespace {

/// What the process writes to stderr meanwhile.
template <class Action>
std::string stderr_of(const Action& action) {
  std::FILE* const file = std::tmpfile();
  const int before = dup(2);
  dup2(fileno(file), 2);
  action();
  dup2(before, 2);
  close(before);
  std::string written(4096, '\0');
  std::rewind(file);
  written.resize(std::fread(written.data(), 1, written.size(), file));
  std::fclose(file);
  return written;
}

}  // namespace

TEST_CASE("sentencepiece: as many pieces as asked for, the same ones every time, and not a word on stderr") {
  const std::string text = sentencepiece_story(1, 3000);
  for (const SentencePieceType type : sentencepiece_types) {
    std::string model;
    const std::string said = stderr_of([&] { model = train_sentencepiece(sentencepiece_config(type, 300), {text}); });
    CHECK(said == "");
    CHECK(train_sentencepiece(sentencepiece_config(type, 300), {text}) == model);
    const SentencePieceTokenizer tokenizer(model, "m");
    CHECK(tokenizer.vocabulary_size() == 300);
    CHECK(tokenizer.piece(tokenizer.start_token(), -1) == "\n");
    CHECK(tokenizer.encode(text).size() < text.size() / 2);
  }
}

TEST_CASE("sentencepiece: blanks come back even when the training text has none") {
  struct Row {
    std::string text;
    int64_t size;
  };
  for (const Row& row :
       {Row{"aaaabaaab", 263}, Row{sentencepiece_story(1, 400, {"\xe6\x97\xa5", "\xe6\x9c\xac"}), 265}}) {
    std::string text = row.text;
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    for (const SentencePieceType type : sentencepiece_types) {
      const auto tokenizer = make_tokenizer(sentencepiece_config(type, row.size), {text});
      for (const std::string& asked : {std::string(" a  \xe6\x97\xa5 b "), text})
        CHECK(tokenizer->decode(tokenizer->encode(asked)) == asked);
    }
  }
}

TEST_CASE("sentencepiece: a learnt model is on the disk before it has its name, and so is its folder") {
  SentencePieceTokenizerConfig config = sentencepiece_config(SentencePieceType::bpe, 300);
  const TemporaryFolder folder;
  config.model = folder.path("made/a.model");
  std::vector<std::string> calls;
  set_file_hook([&](const char* call, const std::string&) { calls.push_back(call); });
  make_tokenizer(config, {sentencepiece_story(1, 3000)});
  set_file_hook({});
  CHECK(calls == std::vector<std::string>{"mkdir", "fsync folder", "create", "open", "write", "fsync", "close",
                                          "rename", "fsync folder"});
}

TEST_CASE("sentencepiece: it learns from training text alone, evenly from much of it, and keeps the model it learnt") {
  const TemporaryFolder folder;
  TextSourceConfig config;
  config.train = {folder.write("train.txt", sentencepiece_story(1, 3000))};
  config.valid = {folder.write("valid.txt", sentencepiece_story(9, 3000, {"zzy", "qua", "xio"}))};
  SentencePieceTokenizerConfig tokenizer = sentencepiece_config(SentencePieceType::bpe, 300);
  tokenizer.model = folder.path("made/here.model");
  config.tokenizer = tokenizer;
  const TextData first = loaded(config);
  CHECK(first.tokenizer->encode("zzy").size() == 3);
  CHECK(first.valid.bytes == static_cast<int64_t>(std::filesystem::file_size(config.valid[0])));
  CHECK(first.tokenizer->decode(first.train.tokens.to_vector()) == sentencepiece_story(1, 3000));
  REQUIRE(std::filesystem::exists(tokenizer.model));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path("made")), {}) == 1);

  config.train = {
      folder.write("other.txt", sentencepiece_story(5, 3000, {"zzy", "qua", "xio"}))};  // the model is there now
  CHECK(loaded(config).tokenizer->fingerprint() == first.tokenizer->fingerprint());
  config.valid.clear();
  CHECK(loaded(config, first.tokenizer).tokenizer == first.tokenizer);

  tokenizer.model = "";
  tokenizer.training_bytes = 4000;
  const std::string front = sentencepiece_story(1, 3000), back = sentencepiece_story(5, 3000, {"zzy", "qua", "xio"});
  const auto both = make_tokenizer(tokenizer, {front, back});
  for (const char* syllable : {"sti", "zzy", "qua"}) CHECK_MESSAGE(both->encode(syllable).size() == 1, syllable);
}

TEST_CASE("sentencepiece: what cannot be trained or read says why and what to do") {
  const TemporaryFolder folder;
  const std::string text = sentencepiece_story(1, 500);
  struct Row {
    const char* what;
    std::function<void(SentencePieceTokenizerConfig&)> change;
    std::string text;
    std::vector<std::string> message;
  };
  const std::vector<Row> rows = {
      {"too many",
       [](auto& c) { c.vocabulary_size = 100000; },
       text,
       {"data.tokenizer.vocabulary_size", "the training text does not yield 100000 pieces; ",
        " or less, or train on more text"}},
      {"bytes alone",
       [](auto& c) { c.vocabulary_size = 200; },
       text,
       {"data.tokenizer.vocabulary_size: 200 pieces are too few: single characters and bytes need 25"}},
      {"too few",
       [](auto& c) { c.vocabulary_size = 263; },
       text,
       {"data.tokenizer.vocabulary_size: 263 pieces are too few", "raise it above that"}},
      {"nothing", [](auto&) {}, "\n\n", {"no training text to learn the tokenizer's pieces from"}},
      {"blanks alone", [](auto&) {}, " \t \n", {"no training text to learn the tokenizer's pieces from"}},
      {"no text", [](auto&) {}, "", {"no training text to learn the tokenizer's pieces from"}},
      {"no model",
       [&](auto& c) { c.model = folder.write("bad.model", "not a model"); },
       text,
       {"bad.model: not a SentencePiece model", "use another copy"}},
      {"half a model",
       [&](auto& c) {
         const std::string model = foreign_model(text);
         c.model = folder.write("half.model", model.substr(0, model.size() / 2));
       },
       text,
       {"half.model: not a SentencePiece model"}},
      {"a folder", [&](auto& c) { c.model = folder.path(); }, text, {"is a folder"}}};
  for (const SentencePieceType type : sentencepiece_types)
    for (const Row& row : rows) {
      SentencePieceTokenizerConfig config = sentencepiece_config(type, 280);
      row.change(config);
      std::string message;
      const std::string said =
          stderr_of([&] { message = message_of<Error>([&] { make_tokenizer(config, {row.text}); }); });
      check_contains(message, row.message);
      CHECK_MESSAGE(said == "", row.what);
    }
  for (const char* json :
       {R"({"kind": "sentencepiece"})", R"({"kind": "sentencepiece", "model": "*"})",
        R"({"kind": "sentencepiece", "model": ""})", R"({"kind": "sentencepiece", "model": "Zm9v"})"})
    CHECK_THROWS_AS(tokenizer_from_json(json), Error);
}

TEST_CASE("sentencepiece: odd little texts neither end the process nor lose a character") {
  const std::vector<std::string> texts = {"a",
                                          " ",
                                          "  ",
                                          "\t",
                                          "ab",
                                          "a a",
                                          "a\nb",
                                          "\xe2\x96\x81",
                                          "\xe2\x96\x85 x",
                                          std::string("\0", 1),
                                          std::string("a\0b c", 5),
                                          "<unk>",
                                          "<unk>\n<0x41><0x42>",
                                          "</s> <s>",
                                          "\xf0\x9f\x98\x80",
                                          std::string(5000, 'x'),
                                          std::string(3000, ' ') + "y",
                                          random_spaced_text(7, 3000)};
  for (const SentencePieceType type : sentencepiece_types)
    for (const std::string& text : texts)
      for (const int64_t size : {261, 262, 263, 270, 400}) {
        SentencePieceTokenizerConfig config = sentencepiece_config(type, size);
        try {
          const auto tokenizer = make_tokenizer(config, {text});
          if (text != "\xe2\x96\x81") CHECK(tokenizer->decode(tokenizer->encode(text)) == text);
        } catch (const Error&) {  // too few or too many pieces
        }
      }
}

TEST_CASE("sentencepiece: the smallest vocabulary that a message names is possible, and nothing smaller is") {
  const std::string text = sentencepiece_story(3, 300);
  for (const SentencePieceType type : sentencepiece_types) {
    const auto refusal = [&](int64_t size) -> std::string {
      try {
        const int64_t made = make_tokenizer(sentencepiece_config(type, size), {text})->vocabulary_size();
        CHECK(made == size);
      } catch (const Error& error) {
        return error.what();
      }
      return "";
    };
    // Raised to what the message asks for until it is enough: first the fixed pieces, then those of the text.
    int64_t least = 4, refused = 0;
    for (std::string message; refused < 10 && !(message = refusal(least)).empty(); ++refused) {
      CHECK(contains(message, std::to_string(least) + " pieces are too few"));
      const size_t at = message.find(" need ");
      REQUIRE_MESSAGE(at != std::string::npos, message);
      const int64_t needed = std::stoll(message.substr(at + 6));
      REQUIRE(needed >= least);
      least = std::max(least + 1, needed);
    }
    CHECK(refused > 0);
    CHECK(refused <= 3);
    CHECK(contains(refusal(least - 1), " need " + std::to_string(least)));
  }
}
