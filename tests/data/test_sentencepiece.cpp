#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <sstream>
#include <unordered_map>

#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "core/io/file.hpp"
#include "core/text/utf8.hpp"
#include "data/text/text_source.hpp"
#include "data/tokenizers/sentencepiece_training.hpp"
#include "data/tokenizers/tokenizer_kinds.hpp"
#include "support.hpp"

using namespace capstan;

namespace {

/// Sentences of made-up words, the same ones every time.
std::string sentencepiece_story(uint64_t seed, int words,
                                const std::vector<std::string>& syllables = {"ba", "ro", "sti", "n", "Ge", "ly",
                                                                             "mu"}) {
  RandomStream random(random_key(seed, "story"));
  std::string text;
  for (int i = 0; i < words; ++i) {
    const auto parts = 1 + random.below(3);
    for (uint64_t part = 0; part < parts; ++part) text += syllables[random.below(syllables.size())];
    text += i % 9 == 8 ? ".\n" : " ";
  }
  return text;
}

SentencePieceTokenizerConfig config_of(SentencePieceType type, int64_t size) {
  SentencePieceTokenizerConfig config;
  config.model_type = type;
  config.vocabulary_size = size;
  return config;
}

const std::vector<SentencePieceType> types = {SentencePieceType::bpe, SentencePieceType::unigram};

/// A model as others train it: a blank invented before each text, blanks folded, nmt_nfkc, no bytes.
std::string foreign_model(const std::string& text, const std::unordered_map<std::string, std::string>& more = {}) {
  struct Lines final : sentencepiece::SentenceIterator {
    std::vector<std::string> lines;
    size_t at = 0;
    bool done() const override { return at == lines.size(); }
    void Next() override { ++at; }
    const std::string& value() const override { return lines[at]; }
    sentencepiece::util::Status status() const override { return {}; }
  } lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.lines.push_back(line);
  std::unordered_map<std::string, std::string> options = {{"vocab_size", "60"}, {"minloglevel", "4"}};
  for (const auto& option : more) options[option.first] = option.second;
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(options, &lines, &model);
  REQUIRE_MESSAGE(status.ok(), status.ToString());
  return model;
}

std::string random_spaced_text(uint64_t seed, int characters) {
  RandomStream random(random_key(seed, "text"));
  std::string text;
  for (int i = 0; i < characters; ++i) {
    static const uint32_t limits[] = {0x80, 0x800, 0x10000, 0x110000};
    uint32_t point = static_cast<uint32_t>(random.below(limits[random.below(4)]));
    if ((point >= 0xd800 && point < 0xe000) || point == 0x2581) point = '\n';
    append_utf8(text, random.below(4) == 0 ? ' ' : point);
  }
  return text;
}

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
  for (const SentencePieceType type : types) {
    std::string model;
    const std::string said = stderr_of([&] { model = train_sentencepiece(config_of(type, 300), {text}); });
    CHECK(said == "");
    CHECK(train_sentencepiece(config_of(type, 300), {text}) == model);
    const SentencePieceTokenizer tokenizer(model, {}, "m");
    CHECK(tokenizer.vocabulary_size() == 300);
    CHECK(tokenizer.piece(tokenizer.start_token(), -1) == "\n");
    CHECK(tokenizer.encode(text).size() < text.size() / 2);
  }
}

TEST_CASE("sentencepiece: any text comes back, character by character, and token by token in whole characters") {
  for (const SentencePieceType type : types) {
    const auto tokenizer = make_tokenizer(config_of(type, 300), {sentencepiece_story(1, 3000)});
    std::vector<std::string> texts = {"",
                                      "\n",
                                      " ",
                                      "  two  blanks  ",
                                      "\n\n a\n",
                                      "\ttab\tand \n  line",
                                      "<unk>",
                                      "<unk>\n<0x41><0x42>",
                                      "<s>",
                                      "<0x41> bar",
                                      std::string("nul\0nul", 7),
                                      "\xef\xbf\xbd",
                                      "bar\r\nost",
                                      "\xe2\x96\x85",
                                      sentencepiece_story(2, 50)};
    for (uint64_t seed = 0; seed < 20; ++seed) texts.push_back(random_spaced_text(seed, 200));
    for (const std::string& text : texts) {
      const std::vector<int32_t> ids = tokenizer->encode(text);
      CHECK(tokenizer->decode(ids) == text);
      CHECK(tokenizer_from_json(tokenizer->to_json())->encode(text) == ids);
      StreamingDecoder decoder(tokenizer);
      std::string shown;
      for (const int32_t id : ids) {
        const std::string piece = decoder.push(id);
        CHECK_NOTHROW(check_utf8(piece, "piece"));
        shown += piece;
      }
      CHECK(shown + decoder.finish() == text);
    }
    CHECK(tokenizer->decode(tokenizer->encode("\xe2\x96\x81")) == " ");  // the one exception
    CHECK(contains(message_of<Error>([&] { tokenizer->encode("a\n\xff", "f"); }), "f:2:1: byte 0xff"));
    CHECK_THROWS_AS(tokenizer->piece(300, -1), std::invalid_argument);
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
    for (const SentencePieceType type : types) {
      const auto tokenizer = make_tokenizer(config_of(type, row.size), {text});
      for (const std::string& asked : {std::string(" a  \xe6\x97\xa5 b "), text})
        CHECK(tokenizer->decode(tokenizer->encode(asked)) == asked);
    }
  }
}

TEST_CASE("sentencepiece: a learnt model is on the disk before it has its name, and so is its folder") {
  SentencePieceTokenizerConfig config = config_of(SentencePieceType::bpe, 300);
  const auto folder = std::filesystem::temp_directory_path() / ("capstan-pieces-" + std::to_string(getpid()));
  std::filesystem::remove_all(folder);
  config.model = (folder / "a.model").string();
  std::vector<std::string> calls;
  set_file_hook([&](const char* call, const std::string&) { calls.push_back(call); });
  make_tokenizer(config, {sentencepiece_story(1, 3000)});
  set_file_hook({});
  CHECK(calls ==
        std::vector<std::string>{"mkdir", "fsync folder", "open", "write", "fsync", "close", "rename", "fsync folder"});
  std::filesystem::remove_all(folder);
}

TEST_CASE("sentencepiece: without bytes, what has no piece is unknown") {
  SentencePieceTokenizerConfig config = config_of(SentencePieceType::bpe, 40);
  config.byte_fallback = false;
  const auto tokenizer = make_tokenizer(config, {sentencepiece_story(1, 3000)});
  CHECK(tokenizer->vocabulary_size() == 40);
  CHECK(tokenizer->decode(tokenizer->encode("ba\xe6\x97\xa5 ro\n")) == "ba\xef\xbf\xbd ro\n");
}

TEST_CASE("sentencepiece: texts are cut only where the tokens do not change, and long lines too") {
  for (const SentencePieceType type : types)
    for (const NormalForm form : {NormalForm::none, NormalForm::nfkc}) {
      SentencePieceTokenizerConfig config = config_of(type, 300);
      config.normalisation.form = form;
      const auto tokenizer = make_tokenizer(config, {sentencepiece_story(1, 3000)});
      for (const std::string& text :
           {sentencepiece_story(2, 40), std::string("  a \n  b\n\nc\xc2\xa0 d\xc2\xa0 "), random_spaced_text(3, 100)})
        check_boundaries(*tokenizer, config, text);
    }
}

TEST_CASE("sentencepiece: models of others give the ids that SentencePiece itself gives, line by line") {
  const TemporaryFolder folder;
  const std::string text = sentencepiece_story(1, 2000);
  for (const auto& options : std::vector<std::unordered_map<std::string, std::string>>{
           {},
           {{"model_type", "bpe"},
            {"byte_fallback", "true"},
            {"vocab_size", "330"},
            {"normalization_rule_name", "identity"}},
           {{"split_by_whitespace", "false"}, {"vocab_size", "200"}},
           {{"add_dummy_prefix", "false"}},
           {{"treat_whitespace_as_suffix", "true"}},
           {{"model_type", "char"}, {"eos_id", "-1"}}}) {
    SentencePieceTokenizerConfig config = config_of(SentencePieceType::bpe, 9999);  // of no account
    config.model = folder.write("given.model", foreign_model(text, options));
    const auto tokenizer = make_tokenizer(config, {"nothing to learn from"});
    sentencepiece::SentencePieceProcessor processor;
    REQUIRE(processor.Load(config.model).ok());
    CHECK(tokenizer->vocabulary_size() == processor.GetPieceSize());
    for (const std::string& line :
         {std::string("baro stin"), std::string(" Ge  ly "), std::string("x\xe6\x97\xa5 mu"), std::string()}) {
      std::vector<int> ids;
      REQUIRE(processor.Encode(line, &ids).ok());
      CHECK(tokenizer->encode(line) == std::vector<int32_t>(ids.begin(), ids.end()));
      ids.push_back(tokenizer->start_token());
      CHECK(tokenizer->encode(line + "\n") == std::vector<int32_t>(ids.begin(), ids.end()));
    }
    if (options.count("treat_whitespace_as_suffix") == 0)  // blanks behind words: one more at a line's end
      CHECK(tokenizer->decode(tokenizer->encode("baro stin\nGely\n")) == "baro stin\nGely\n");
    const std::string two = "baro stin\n Gely mu";
    for (size_t at = 0; at <= two.size(); ++at) {
      const size_t boundary = tokenizer->boundary(two, at);
      auto front = tokenizer->encode(two.substr(0, boundary));
      const auto back = tokenizer->encode(two.substr(boundary));
      front.insert(front.end(), back.begin(), back.end());
      CHECK(front == tokenizer->encode(two));
    }
  }
}

namespace {

/// A field of Protocol Buffers that holds bytes.
std::string field_of(int number, const std::string& bytes) {
  std::string length;
  for (size_t rest = bytes.size(); length.empty() || rest > 0; rest >>= 7)
    length += static_cast<char>((rest & 0x7f) | (rest >= 0x80 ? 0x80 : 0));
  return static_cast<char>(number << 3 | 2) + length + bytes;
}

}  // namespace

TEST_CASE("sentencepiece: a model that leads out of its own tables is refused") {
  const std::string model = foreign_model(sentencepiece_story(1, 500));
  CHECK_NOTHROW(SentencePieceTokenizer(model, {}, "m"));
  const std::string byte_piece = field_of(1, field_of(1, "<0xZZ>") + "\x18\x06"),
                    short_piece = field_of(1, field_of(1, "<") + "\x18\x06"),
                    no_score = field_of(1, field_of(1, "new") + std::string("\x15\0\0\xc0\x7f", 5)),
                    zero_byte = field_of(1, field_of(1, std::string("n\0w", 3)));
  const auto charsmap = [](uint32_t units, uint32_t first, const std::string& texts) {
    std::string map;
    const auto put = [&](uint32_t bits) {
      for (int i = 0; i < 4; ++i) map += static_cast<char>(bits >> (8 * i) & 0xff);
    };
    put(4 * units);
    for (uint32_t i = 0; i < units; ++i) put(i == 0 ? first : 0x80000000u + (i == 1 ? 5 : 0));
    return field_of(3, field_of(2, map + texts));
  };
  const std::string text("x\0", 2);
  CHECK_NOTHROW(SentencePieceTokenizer(model + charsmap(256, 0, text), {}, "m"));
  for (const std::string& more :
       {byte_piece, short_piece, no_score, zero_byte, charsmap(256, 1u << 20, text), charsmap(256, 0xffffffffu, text),
        charsmap(8, 0, text), charsmap(256, 1u << 8 | 1u << 10, text), charsmap(256, 0, "x"), charsmap(0, 0, text)}) {
    const std::string message = message_of<Error>([&] { SentencePieceTokenizer(model + more, {}, "m"); });
    CHECK_MESSAGE(contains(message, "m: not a SentencePiece model, or a damaged one"), message);
  }
}

TEST_CASE("sentencepiece: a line of any length, and one without blanks, is read") {
  const std::string words = sentencepiece_story(1, 2000), model = foreign_model(words);
  std::string line = words;
  std::replace(line.begin(), line.end(), '\n', ' ');
  line.pop_back();
  while (line.size() < 300000) line += " " + line;
  for (const auto& tokenizer :
       {std::make_shared<SentencePieceTokenizer>(model, Normalisation{}, "m"),
        std::make_shared<SentencePieceTokenizer>(train_sentencepiece(config_of(SentencePieceType::bpe, 300), {line}),
                                                 Normalisation{}, "m")})
    for (const std::string& text : {line, std::string(300000, 'b')})
      CHECK(tokenizer->decode(tokenizer->encode(text)) == text);
}

TEST_CASE("sentencepiece: it learns from training text alone, evenly from much of it, and keeps the model it learnt") {
  const TemporaryFolder folder;
  TextSourceConfig config;
  config.train = {folder.write("train.txt", sentencepiece_story(1, 3000))};
  config.valid = {folder.write("valid.txt", sentencepiece_story(9, 3000, {"zzy", "qua", "xio"}))};
  SentencePieceTokenizerConfig tokenizer = config_of(SentencePieceType::bpe, 300);
  tokenizer.model = folder.path("made/here.model");
  config.tokenizer = tokenizer;
  const TextData first = load_text(config);
  CHECK(first.tokenizer->encode("zzy").size() == 3);
  CHECK(first.valid.bytes() == static_cast<int64_t>(std::filesystem::file_size(config.valid[0])));
  CHECK(first.tokenizer->decode(first.train.tokens.to_vector()) == sentencepiece_story(1, 3000));
  REQUIRE(std::filesystem::exists(tokenizer.model));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path("made")), {}) == 1);

  config.train = {
      folder.write("other.txt", sentencepiece_story(5, 3000, {"zzy", "qua", "xio"}))};  // the model is there now
  CHECK(load_text(config).tokenizer->fingerprint() == first.tokenizer->fingerprint());
  config.valid.clear();
  CHECK(load_text(config, first.tokenizer).tokenizer == first.tokenizer);

  tokenizer.model = "";
  tokenizer.training_bytes = 4000;
  const std::string front = sentencepiece_story(1, 3000), back = sentencepiece_story(5, 3000, {"zzy", "qua", "xio"});
  const auto both = make_tokenizer(tokenizer, {front, back});
  for (const char* syllable : {"sti", "zzy", "qua"}) CHECK_MESSAGE(both->encode(syllable).size() == 1, syllable);
}

TEST_CASE("sentencepiece: normalisation comes first, and is frozen with the model") {
  SentencePieceTokenizerConfig config = config_of(SentencePieceType::unigram, 290);
  config.normalisation = {NormalForm::nfkc, true};
  const auto tokenizer = make_tokenizer(config, {sentencepiece_story(1, 3000)});
  const auto copy = tokenizer_from_json(tokenizer->to_json());
  CHECK(copy->decode(copy->encode("GE\xef\xac\x81 e\xcc\x81")) == "gefi \xc3\xa9");
  CHECK(copy->fingerprint() == tokenizer->fingerprint());
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
  for (const SentencePieceType type : types)
    for (const Row& row : rows) {
      SentencePieceTokenizerConfig config = config_of(type, 280);
      row.change(config);
      std::string message;
      const std::string said =
          stderr_of([&] { message = message_of<Error>([&] { make_tokenizer(config, {row.text}); }); });
      for (const std::string& part : row.message) CHECK_MESSAGE(contains(message, part), row.what, ": ", message);
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
  for (const SentencePieceType type : types)
    for (const std::string& text : texts)
      for (const int64_t size : {261, 262, 263, 270, 400}) {
        SentencePieceTokenizerConfig config = config_of(type, size);
        try {
          const auto tokenizer = make_tokenizer(config, {text});
          if (text != "\xe2\x96\x81") CHECK(tokenizer->decode(tokenizer->encode(text)) == text);
        } catch (const Error&) {  // too few or too many pieces
        }
      }
}

TEST_CASE("sentencepiece: the smallest vocabulary that a message names is possible, and nothing smaller is") {
  const std::string text = sentencepiece_story(3, 300);
  for (const SentencePieceType type : types)
    for (const bool bytes : {false, true}) {
      INFO("bytes ", bytes);
      const auto refusal = [&](int64_t size) -> std::string {
        SentencePieceTokenizerConfig config = config_of(type, size);
        config.byte_fallback = bytes;
        try {
          const int64_t made = make_tokenizer(config, {text})->vocabulary_size();
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
