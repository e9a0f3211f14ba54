#include "data/tokenizers/texts.hpp"

#include "core/base/error.hpp"
#include "core/strings/utf8.hpp"
#include "data/tokenizers/tokenizer_kinds.hpp"
#include "support.hpp"

using namespace capstan;

namespace {

/// Combining accents, three-byte blanks, long words, blanks in a row, empty lines, no line's end at the end.
std::string difficult_text() {
  std::string text;
  for (int i = 0; i < 12; ++i)
    text +=
        "Un e\xcc\x81t\xc3\xa9  a\xc2\xa0"
        "b\t" +
        std::string(static_cast<size_t>(5 * i), 'x') + " \xcc\x81 \xe2\x80\x83\xef\xbc\xa1.\n\n \n" +
        std::to_string(i * 7919) + "don't \xe6\xbc\xa2\xe5\xad\x97";
  return text;
}

std::vector<TokenizerConfig> text_tokenizers() {
  CharTokenizerConfig chars;
  WordTokenizerConfig words;
  SentencePieceTokenizerConfig pieces;
  pieces.vocabulary_size = 290;
  std::vector<TokenizerConfig> all{ByteTokenizerConfig{}, chars, words, pieces};
  words.split = WordSplit::words;
  words.lower_case = true;
  pieces.model_type = SentencePieceType::unigram;
  all.insert(all.end(), {words, pieces});
  return all;
}

}  // namespace

TEST_CASE("a text in blocks of any size has the tokens of the whole, and teaches the same tokenizer") {
  const std::string text = difficult_text();
  for (const TokenizerConfig& config : text_tokenizers()) {
    const auto tokenizer = make_tokenizer(config, {text});
    const std::vector<int32_t> whole = tokenizer->encode(text);
    for (const size_t size : {1, 2, 3, 7, 16, 50, 1000}) {
      std::string joined;
      std::vector<int32_t> ids;
      size_t blocks = 0;
      for_blocks(
          Text(text), boundary_of(*tokenizer),
          [&](std::string_view block) {
            joined += block;
            const auto part = tokenizer->encode(block);
            ids.insert(ids.end(), part.begin(), part.end());
            ++blocks;
          },
          size);
      CHECK(joined == text);
      CHECK_MESSAGE(ids == whole, tokenizer->kind(), " in blocks of ", size);
      CHECK(blocks > text.size() / (size + 300));
    }
  }
}

TEST_CASE("blocks end behind a line where one is near") {
  const std::string text = "aaaa\nbb\ncc\ndddddddddddd\ne";
  std::vector<std::string> blocks;
  for_blocks(
      Text(text), [](std::string_view, size_t at) { return at; }, [&](std::string_view b) { blocks.emplace_back(b); },
      10);
  CHECK(blocks == std::vector<std::string>{"aaaa\nbb\n", "cc\nddddddd", "ddddd\ne"});
}

TEST_CASE("learning from a mapped file gives what learning from memory gives") {
  const TemporaryFolder folder;
  std::string text;
  while (text.size() < 3 * text_block) text += difficult_text();
  const auto file = std::make_shared<const MappedFile>(folder.write("text", "front" + text));
  for (TokenizerConfig config : text_tokenizers()) {
    if (auto* pieces = std::get_if<SentencePieceTokenizerConfig>(&config)) pieces->training_bytes = 30000;
    size_t read = 0;
    Progress progress([&](const std::string&) { ++read; }, "learning", static_cast<double>(text.size()), in_megabytes,
                      0);
    const Texts texts(1, static_cast<int64_t>(text.size()),
                      [&](size_t) { return Text(file, 5, file->size(), &progress); });
    CHECK(make_tokenizer(config, texts)->fingerprint() == make_tokenizer(config, {text})->fingerprint());
    if (learns_from_texts(config)) CHECK(read >= 1);
  }
}

TEST_CASE("UTF-8 in parts: places go on from part to part, and plain stretches hide no mistake") {
  const std::string line = "0123456789abcdef";
  TextPlace place;
  check_utf8("ab\n" + line, "f", place);
  check_utf8(line + "\xc3\xa9", "f", place);
  CHECK(place.line == 2);
  CHECK(place.column == 34);
  CHECK(contains(message_of<Error>([&] { check_utf8("x\xff", "f", place); }), "f:2:35: byte 0xff"));
  for (size_t at = 0; at < 24; ++at) {
    std::string text(24, 'a');
    text[at] = '\x80';
    const std::string wanted = "f:7:" + std::to_string(at + 1) + ": byte 0x80";
    CHECK(contains(message_of<Error>([&] { check_utf8(text, "f", 7); }), wanted));
    text[at] = '\n';
    text += '\xff';
    CHECK(contains(message_of<Error>([&] { check_utf8(text, "f"); }), "f:2:" + std::to_string(24 - at) + ": "));
  }
}

TEST_CASE("progress tells the share, the rate and the time left, on lines that become rarer") {
  std::vector<std::string> lines;
  const LogLine log = [&](const std::string& line) { lines.push_back(line); };
  Progress often(log, "tokenising", 8000000, in_megabytes, 0), seldom(log, "reading", 8000000);
  often.add(2000000);
  REQUIRE(lines.size() == 1);
  check_contains(lines[0], {"tokenising: 25 %, 2 of 8 MB, ", " MB/s, 0s left"});
  for (int i = 0; i < 1'000'000; ++i) often.add(1);
  CHECK(lines.size() < 25);
  seldom.add(8000000);
  for (const std::string& line : lines) CHECK_FALSE(contains(line, "reading"));
  RateLimiter few(7), unknown(7);
  int said = 0, said_of_unknown = 0;
  for (int step = 1; step <= 10'000; ++step) {
    said += few.due(step / 10'000.0) ? 1 : 0;
    said_of_unknown += unknown.due(0) ? 1 : 0;
  }
  CHECK(said == 8);
  CHECK(said_of_unknown == 14);
}

TEST_CASE("UTF-16 and UTF-32 are known by their mark or the places of their NULs") {
  const auto written = [](const std::string& text, size_t unit, size_t place) {
    std::string bytes;
    for (const char c : text) {
      std::string one(unit, '\0');
      one[place] = c;
      bytes += one;
    }
    return bytes;
  };
  const std::string text = "good\ta fine day\nbad\train\n";
  const auto is = [](const std::string& bytes) {
    const char* const encoding = wide_encoding(bytes);
    return std::string(encoding == nullptr ? "" : encoding);
  };
  CHECK(is(written(text, 2, 0)) == "UTF-16LE");
  CHECK(is(written(text, 2, 1)) == "UTF-16BE");
  CHECK(is(written(text, 4, 0)) == "UTF-32LE");
  CHECK(is(written(text, 4, 3)) == "UTF-32BE");
  CHECK(is("\xff\xfe" + written(text, 2, 0)) == "UTF-16");
  CHECK(is("\xfe\xff") == "UTF-16");
  CHECK(is(std::string("\xff\xfe\0\0", 4) + written(text, 4, 0)) == "UTF-32");
  for (const std::string& other : {std::string(), text, std::string(100, '\0'), text + std::string(1, '\0') + text,
                                   std::string("\0\xff\x01", 3), std::string("caf\xe9")})
    CHECK(is(other).empty());
}
