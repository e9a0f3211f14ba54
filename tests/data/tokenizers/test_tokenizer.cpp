#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "core/io/regular_file.hpp"
#include "core/strings/utf8.hpp"
#include "data/tokenizers/tokenizer_kinds.hpp"
#include "tests/data/support.hpp"

using namespace capstan;

namespace {

std::string random_text(uint64_t seed, int characters) {
  RandomStream random(random_key(seed, "text"));
  std::string text;
  for (int i = 0; i < characters; ++i) {
    static const uint32_t limits[] = {0x80, 0x800, 0x10000, 0x110000};
    uint32_t point = static_cast<uint32_t>(random.below(limits[random.below(4)]));
    if (point >= 0xd800 && point < 0xe000) point = '\n';
    append_utf8(text, point);
  }
  return text;
}

std::string random_bytes(uint64_t seed, int count) {
  RandomStream random(random_key(seed, "bytes"));
  std::string text;
  for (int i = 0; i < count; ++i) text.push_back(static_cast<char>(random.below(256)));
  return text;
}

std::shared_ptr<const Tokenizer> copy_by_json(const Tokenizer& tokenizer) {
  return tokenizer_from_json(tokenizer.to_json());
}

}  // namespace

TEST_CASE("UTF-8 is read strictly") {
  struct Row {
    std::string text;
    Utf8Character::State state;
    size_t bytes;
  };
  using State = Utf8Character::State;
  for (const Row& row :
       {Row{"a", State::valid, 1}, Row{"\xc3\xa9", State::valid, 2}, Row{"\xe2\x82\xac", State::valid, 3},
        Row{"\xf0\x9f\x98\x80", State::valid, 4}, Row{"\xf4\x8f\xbf\xbf", State::valid, 4},
        Row{"\x80", State::invalid, 1}, Row{"\xc0\xaf", State::invalid, 1}, Row{"\xc1\xbf", State::invalid, 1},
        Row{"\xe0\x9f\xbf", State::invalid, 1}, Row{"\xed\xa0\x80", State::invalid, 1},
        Row{"\xf0\x8f\xbf\xbf", State::invalid, 1}, Row{"\xf4\x90\x80\x80", State::invalid, 1},
        Row{"\xf5\x80\x80\x80", State::invalid, 1}, Row{"\xff", State::invalid, 1}, Row{"\xe2\x82z", State::invalid, 2},
        Row{"\xe2\x82", State::cut_off, 2}, Row{"\xf0", State::cut_off, 1}}) {
    const Utf8Character character = first_character(row.text);
    CHECK(character.state == row.state);
    CHECK(character.bytes == row.bytes);
  }
  CHECK(first_character("\xe2\x82\xac").code_point == 0x20ac);
}

TEST_CASE("an invalid byte is named with file, line, column and the remedy") {
  const std::string text = "one\ntw\xc3\xb6 \xff three";
  for (const std::shared_ptr<const Tokenizer>& tokenizer :
       {std::shared_ptr<const Tokenizer>(std::make_shared<CharTokenizer>(std::vector<uint32_t>{'a'})),
        std::shared_ptr<const Tokenizer>(
            std::make_shared<WordTokenizer>(WordTokenizer::Rule{}, std::vector<std::string>{"a"}))}) {
    const std::string message = message_of<Error>([&] { tokenizer->encode(text, "book.txt"); });
    CHECK_MESSAGE(contains(message, "book.txt:2:5: byte 0xff"), message);
    CHECK_MESSAGE(contains(message, "tokenizer 'byte'"), message);
  }
  CHECK_NOTHROW(ByteTokenizer().encode(text));
}

TEST_CASE("byte tokenizer: decode inverts encode on anything") {
  const ByteTokenizer tokenizer;
  CHECK(tokenizer.vocabulary_size() == 256);
  const std::string bytes = random_bytes(1, 4000);
  CHECK(tokenizer.decode(tokenizer.encode(bytes)) == bytes);
  CHECK(tokenizer.encode("A\xff") == std::vector<int32_t>{65, 255});
  CHECK_THROWS_AS(tokenizer.decode({256}), std::invalid_argument);
  CHECK_THROWS_AS(tokenizer.decode({-1}), std::invalid_argument);
}

TEST_CASE("char tokenizer: vocabulary in the order of code points, decode inverts encode") {
  const CharTokenizer small = CharTokenizer::from_texts({"cab", "b\xc3\xa9\n"});
  CHECK(small.vocabulary_size() == 6);  // <unk>, \n a b c é
  CHECK(small.encode("\nabc\xc3\xa9z") == std::vector<int32_t>{1, 2, 3, 4, 5, CharTokenizer::unknown});
  CHECK(small.decode({CharTokenizer::unknown, 2}) ==
        "\xef\xbf\xbd"
        "a");
  CHECK(small.start_token() == 1);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::string text = random_text(seed, 500);
    const CharTokenizer tokenizer = CharTokenizer::from_texts({text});
    CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
    CHECK(copy_by_json(tokenizer)->encode(text) == tokenizer.encode(text));
  }
}

TEST_CASE("word tokenizer: blanks, line ends, order of frequency, limits") {
  const std::string text = " b a  b\n\na <unk> c b\n";
  WordTokenizerConfig config;
  const WordTokenizer all = WordTokenizer::from_texts(config, {text});
  CHECK(all.words() == std::vector<std::string>{"<unk>", "<eos>", "b", "a", "c"});
  CHECK(all.encode(text) == std::vector<int32_t>{2, 3, 2, 1, 1, 3, 0, 4, 2, 1});
  CHECK(all.decode(all.encode(text)) == "b a b\n\na <unk> c b\n");
  config.min_count = 2;
  CHECK(WordTokenizer::from_texts(config, {text}).vocabulary_size() == 4);
  config.max_size = 3;
  CHECK(WordTokenizer::from_texts(config, {text}).words().back() == "b");
  CHECK(WordTokenizer::from_texts(config, {text}).encode("a b") == std::vector<int32_t>{0, 2});
}

TEST_CASE("word tokenizer: words and punctuation, lower case") {
  const WordTokenizer tokenizer =
      WordTokenizer::from_texts({WordSplit::words, true, 0, 1}, {"don't STOP-2day \xc3\x89t\xc3\xa9!"});
  const std::vector<std::string> expected = {"<unk>", "<eos>", "!",    "'", "-",
                                             "2day",  "don",   "stop", "t", "\xc3\x89t\xc3\xa9"};
  CHECK(tokenizer.words() == expected);
  CHECK(tokenizer.decode(tokenizer.encode("Don't\tstop")) == "don ' t stop");
  const std::vector<std::string> with_lowest_byte = {"<unk>", "<eos>", "la", "\xc3\x80"};  // 0x80, in a letter
  CHECK(WordTokenizer::from_texts({WordSplit::words, true, 0, 1}, {"\xc3\x80 la"}).words() == with_lowest_byte);
}

TEST_CASE("every tokenizer survives its JSON, and only equal ones have equal fingerprints") {
  std::vector<std::shared_ptr<const Tokenizer>> tokenizers = {
      std::make_shared<ByteTokenizer>(),
      std::make_shared<CharTokenizer>(CharTokenizer::from_texts({"abc"})),
      std::make_shared<CharTokenizer>(CharTokenizer::from_texts({"abd"})),
      std::make_shared<WordTokenizer>(WordTokenizer::Rule{}, std::vector<std::string>{"a", "b"}),
      std::make_shared<WordTokenizer>(WordTokenizer::Rule{}, std::vector<std::string>{"b", "a"}),
      std::make_shared<WordTokenizer>(WordTokenizer::Rule{WordSplit::words, false}, std::vector<std::string>{"a", "b"}),
      std::make_shared<WordTokenizer>(WordTokenizer::Rule{WordSplit::blanks, true},
                                      std::vector<std::string>{"a", "b"})};
  for (size_t i = 0; i < tokenizers.size(); ++i) {
    const auto copy = copy_by_json(*tokenizers[i]);
    CHECK(copy->kind() == tokenizers[i]->kind());
    CHECK(copy->vocabulary_size() == tokenizers[i]->vocabulary_size());
    CHECK(copy->fingerprint().size() == 32);
    for (size_t j = 0; j < tokenizers.size(); ++j)
      CHECK((copy->fingerprint() == tokenizers[j]->fingerprint()) == (i == j));
  }
  for (const char* json :
       {"", "{", "[]", "{\"kind\": \"bpe\"}", "{\"kind\": \"char\"}", "{\"kind\": \"char\", \"code_points\": [5, 5]}",
        "{\"kind\": \"word\", \"split\": \"x\", \"lower_case\": true, \"words\": []}",
        "{\"kind\": \"word\", \"split\": \"blanks\", \"lower_case\": true, \"words\": [\"<unk>\"]}"})
    CHECK_THROWS_AS(tokenizer_from_json(json), Error);
}

TEST_CASE("numbers in a saved tokenizer that its fields cannot hold are refused, and depth is") {
  for (const std::string& json :
       {std::string(R"({"kind": "char", "code_points": [1e99]})"),
        std::string(R"({"kind": "char", "code_points": [-1.5]})"),
        std::string(R"({"kind": "char", "code_points": [4294967296]})"),
        std::string(R"({"kind": "char", "code_points": [1114112]})"),
        std::string(R"({"kind": "char", "code_points": [55296]})"), "{\"kind\": " + std::string(80000, '['),
        std::string(80000, '[') + std::string(80000, ']')})
    CHECK_THROWS_AS(tokenizer_from_json(json), Error);
  try {
    tokenizer_from_json("{\"kind\":\n 1e}", "saved.json");
  } catch (const Error& problem) {
    CHECK(std::string(problem.what()).find("saved.json:2:4: not JSON") == 0);
  }
}

TEST_CASE("a saved tokenizer of a newer format is refused as such, and without a number it has format 1") {
  CHECK(tokenizer_from_json(R"({"kind": "byte", "format": 1})")->kind() == "byte");
  CHECK_THROWS_WITH_AS(
      tokenizer_from_json(R"({"kind": "new", "format": 2})", "saved.json"),
      "saved.json: a newer version of Capstan wrote this tokenizer (its format is 2, this version reads "
      "up to 1): use that version",
      NewerFile);
}

TEST_CASE("the streaming decoder never shows half a character") {
  const auto tokenizer = std::make_shared<ByteTokenizer>();
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::string text = seed < 10 ? random_text(seed, 300) : random_bytes(seed, 300);
    StreamingDecoder decoder(tokenizer);
    std::string shown;
    for (const int32_t id : tokenizer->encode(text)) {
      const std::string piece = decoder.push(id);
      CHECK_NOTHROW(check_utf8(piece, "piece"));
      shown += piece;
    }
    shown += decoder.finish();
    CHECK_NOTHROW(check_utf8(shown, "all"));
    if (seed < 10) CHECK(shown == text);
  }
  StreamingDecoder decoder(tokenizer);
  CHECK(decoder.push(0xe2) == "");
  CHECK(decoder.push(0x82) == "");
  CHECK(decoder.push('a') ==
        "\xef\xbf\xbd"
        "a");
  CHECK(decoder.push(0xf0) == "");
  CHECK(decoder.finish() == "\xef\xbf\xbd");
  StreamingDecoder kept(tokenizer, -1, InvalidBytes::kept);
  CHECK(kept.push(0xe2) == "");
  CHECK(kept.push('a') ==
        "\xe2"
        "a");
  CHECK(kept.push(0xf0) == "");
  CHECK(kept.finish() == "\xf0");

  const auto words = std::make_shared<WordTokenizer>(WordTokenizer::Rule{}, std::vector<std::string>{"a", "b"});
  StreamingDecoder line(words);
  std::string shown;
  for (const int32_t id : {2, 3, 1, 2}) shown += line.push(id);
  CHECK(shown == "a b\na");
}

TEST_CASE("texts are cut only where the tokens do not change") {
  const std::string text = "alpha b\xc3\xa9ta\ngamma";
  for (const TokenizerConfig& config : {TokenizerConfig(ByteTokenizerConfig{}), TokenizerConfig(CharTokenizerConfig{}),
                                        TokenizerConfig(WordTokenizerConfig{})})
    check_boundaries(*make_tokenizer(config, {text}), config, text);
}
