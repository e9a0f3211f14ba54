#include "data/tokenizer.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "data/byte_tokenizer.hpp"
#include "data/char_tokenizer.hpp"
#include "data/fingerprint.hpp"
#include "data/listops_tokenizer.hpp"
#include "data/number_tokenizer.hpp"
#include "data/utf8.hpp"
#include "data/word_tokenizer.hpp"

namespace capstan {
namespace {

WordSplit word_split(const std::string& name) {
  for (const auto& entry : enum_names(WordSplit{}))
    if (entry.name == name) return entry.value;
  throw Error(fmt::format("unknown word split '{}'", name));
}

std::shared_ptr<const Tokenizer> tokenizer_from(const nlohmann::json& json) {
  const auto kind = json.at("kind").get<std::string>();
  if (kind == "byte") return std::make_shared<ByteTokenizer>();
  if (kind == "listops") return std::make_shared<ListOpsTokenizer>();
  if (kind == "number") return std::make_shared<NumberTokenizer>(json.at("size").get<int64_t>());
  if (kind == "char") return std::make_shared<CharTokenizer>(json.at("code_points").get<std::vector<uint32_t>>());
  if (kind == "word") {
    const WordTokenizer::Rule rule{word_split(json.at("split").get<std::string>()), json.at("lower_case").get<bool>()};
    return std::make_shared<WordTokenizer>(rule, json.at("words").get<std::vector<std::string>>());
  }
  throw Error(fmt::format("unknown kind '{}' (known: byte, char, word, listops, number)", kind));
}

}  // namespace

std::string Tokenizer::decode(const std::vector<int32_t>& ids) const {
  std::string text;
  int32_t previous = -1;
  for (const int32_t id : ids) {
    text += piece(id, previous);
    previous = id;
  }
  return text;
}

std::shared_ptr<const Tokenizer> Tokenizer::from_json(const std::string& json, const std::string& file) {
  const auto damaged = [&](const std::string& what) {
    return Error(
        fmt::format("{}: {}: the file is damaged or not a saved tokenizer; use another copy of it", file, what));
  };
  try {
    return tokenizer_from(nlohmann::json::parse(json));
  } catch (const nlohmann::json::parse_error& problem) {
    throw damaged(fmt::format("not JSON from byte {} on", problem.byte));
  } catch (const nlohmann::json::exception&) {
    throw damaged("a key is missing or of another type");
  } catch (const std::invalid_argument& problem) {
    throw damaged(problem.what());
  } catch (const Error& problem) {
    throw damaged(problem.what());
  }
}

std::string Tokenizer::fingerprint() const { return Fingerprint().add(to_json()).hex(); }

void Tokenizer::check_id(int32_t id) const {
  check(id >= 0 && id < vocabulary_size(), "{} tokenizer: id {} is outside the vocabulary of {}", kind(), id,
        vocabulary_size());
}

std::string StreamingDecoder::push(int32_t id) {
  pending_ += tokenizer_->piece(id, previous_);
  previous_ = id;
  return take(false);
}

std::string StreamingDecoder::finish() { return take(true); }

std::string StreamingDecoder::take(bool at_end) {
  std::string text;
  size_t at = 0;
  while (at < pending_.size()) {
    const Utf8Character character = first_character(std::string_view(pending_).substr(at));
    if (character.state == Utf8Character::State::cut_off && !at_end) break;
    if (character.state == Utf8Character::State::valid)
      text.append(pending_, at, character.bytes);
    else
      append_utf8(text, 0xfffd);
    at += character.bytes;
  }
  pending_.erase(0, at);
  return text;
}

std::shared_ptr<const Tokenizer> make_tokenizer(const TokenizerConfig& config,
                                                const std::vector<std::string_view>& texts) {
  if (std::holds_alternative<ByteTokenizerConfig>(config)) return std::make_shared<ByteTokenizer>();
  if (std::holds_alternative<CharTokenizerConfig>(config))
    return std::make_shared<CharTokenizer>(CharTokenizer::from_texts(texts));
  const auto& word = std::get<WordTokenizerConfig>(config);
  return std::make_shared<WordTokenizer>(word.vocabulary.empty() ? WordTokenizer::from_texts(word, texts)
                                                                 : WordTokenizer::from_file(word));
}

bool needs_utf8(const TokenizerConfig& config) { return !std::holds_alternative<ByteTokenizerConfig>(config); }

}  // namespace capstan
