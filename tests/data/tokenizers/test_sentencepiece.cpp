#include "core/base/error.hpp"
#include "data/tokenizers/sentencepiece_tokenizer.hpp"
#include "sentencepiece_support.hpp"

using namespace capstan;

TEST_CASE("sentencepiece: any text comes back, character by character, and token by token in whole characters") {
  for (const SentencePieceType type : sentencepiece_types) {
    const auto tokenizer = make_tokenizer(sentencepiece_config(type, 300), {sentencepiece_story(1, 3000)});
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

TEST_CASE("sentencepiece: texts are cut only where the tokens do not change, and long lines too") {
  for (const SentencePieceType type : sentencepiece_types) {
    const SentencePieceTokenizerConfig config = sentencepiece_config(type, 300);
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
    SentencePieceTokenizerConfig config = sentencepiece_config(SentencePieceType::bpe, 9999);  // is ignored
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
  CHECK_NOTHROW(SentencePieceTokenizer(model, "m"));
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
  CHECK_NOTHROW(SentencePieceTokenizer(model + charsmap(256, 0, text), "m"));
  for (const std::string& more :
       {byte_piece, short_piece, no_score, zero_byte, charsmap(256, 1u << 20, text), charsmap(256, 0xffffffffu, text),
        charsmap(8, 0, text), charsmap(256, 1u << 8 | 1u << 10, text), charsmap(256, 0, "x"), charsmap(0, 0, text)}) {
    const std::string message = message_of<Error>([&] { SentencePieceTokenizer(model + more, "m"); });
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
       {std::make_shared<SentencePieceTokenizer>(model, "m"),
        std::make_shared<SentencePieceTokenizer>(
            train_sentencepiece(sentencepiece_config(SentencePieceType::bpe, 300), {line}), "m")})
    for (const std::string& text : {line, std::string(300000, 'b')})
      CHECK(tokenizer->decode(tokenizer->encode(text)) == text);
}
