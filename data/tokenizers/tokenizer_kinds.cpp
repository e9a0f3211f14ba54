// Makes a tokenizer from its configuration and training texts, or from its JSON in a saved run. The JSON keys of each
// kind must stay readable: tests/data/tokenizers/test_tokenizer.cpp.
#include "data/tokenizers/tokenizer_kinds.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/io/json.hpp"
#include "core/io/regular_file.hpp"
#include "core/strings/base64.hpp"
#include "data/files/text_file.hpp"

namespace capstan {
namespace {

constexpr int64_t tokenizer_format = 1;  // the newest format; a file that names no format has format 1

std::vector<uint32_t> code_points(const nlohmann::json& list) {
  std::vector<uint32_t> points;
  points.reserve(list.size());
  for (const auto& entry : list) {
    const auto point = whole_number(entry, 0, 0x10ffff);
    if (!point) throw Error(fmt::format("{} is not the number of a code point", json_excerpt(entry)));
    points.push_back(static_cast<uint32_t>(*point));
  }
  return points;
}

std::shared_ptr<const Tokenizer> tokenizer_from(const nlohmann::json& json) {
  const auto kind = json.at("kind").get<std::string>();
  if (kind == "byte") return std::make_shared<ByteTokenizer>();
  if (kind == "char") return std::make_shared<CharTokenizer>(code_points(json.at("code_points")));
  if (kind == "word") {
    const auto name = json.at("split").get<std::string>();
    const auto split = enum_value<WordSplit>(name);
    if (!split) throw Error(fmt::format("unknown word split '{}'", name));
    const WordTokenizer::Rule rule{*split, json.at("lower_case").get<bool>()};
    return std::make_shared<WordTokenizer>(rule, json.at("words").get<std::vector<std::string>>());
  }
  if (kind == "sentencepiece")
    return std::make_shared<SentencePieceTokenizer>(from_base64(json.at("model").get<std::string>()), "model");
  throw Error(fmt::format("unknown kind '{}'", kind));
}

void write_model(const std::string& path, const std::string& model) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (!folder.empty()) make_folders(folder);
  replace_file(path, model);
}

/// Whether the model is learnt from the training text: no file is named, or the named one does not exist yet.
bool is_trained(const SentencePieceTokenizerConfig& config) {
  return config.model.empty() || !std::filesystem::exists(config.model);
}

std::shared_ptr<const Tokenizer> make_sentencepiece(const SentencePieceTokenizerConfig& config, const Texts& texts) {
  if (!is_trained(config))
    return std::make_shared<SentencePieceTokenizer>(SentencePieceTokenizer::from_file(config.model));
  std::string model = train_sentencepiece(config, texts);
  if (!config.model.empty()) write_model(config.model, model);
  return std::make_shared<SentencePieceTokenizer>(std::move(model), "the model just trained");
}

std::shared_ptr<const Tokenizer> read_saved(const SavedTokenizerConfig& config) {
  return tokenizer_from_json(read_text_file(config.file), config.file);
}

}  // namespace

std::shared_ptr<const Tokenizer> make_tokenizer(const TokenizerConfig& config, const Texts& texts) {
  if (std::holds_alternative<ByteTokenizerConfig>(config)) return std::make_shared<ByteTokenizer>();
  if (std::holds_alternative<CharTokenizerConfig>(config))
    return std::make_shared<CharTokenizer>(CharTokenizer::from_texts(texts));
  if (const auto* pieces = std::get_if<SentencePieceTokenizerConfig>(&config))
    return make_sentencepiece(*pieces, texts);
  if (const auto* saved = std::get_if<SavedTokenizerConfig>(&config)) return read_saved(*saved);
  const auto& word = std::get<WordTokenizerConfig>(config);
  return std::make_shared<WordTokenizer>(WordTokenizer::from_texts(word, texts));
}

std::shared_ptr<const Tokenizer> tokenizer_from_json(const std::string& json, const std::string& file) {
  const auto damaged = [&](const std::string& what) {
    return Error(
        fmt::format("{}: {}: the file is damaged or not a saved tokenizer; use another copy of it", file, what));
  };
  try {
    const nlohmann::json saved = parse_json(json, {file});
    if (saved.is_object() && saved.contains("format"))
      if (const int64_t format = whole_number_at(saved, "format", 1, int64_t{1} << 53); format > tokenizer_format)
        throw NewerFile(fmt::format(
            "{}: a newer version of Capstan wrote this tokenizer (its format is {}, this version reads up to {}): use "
            "that version",
            file, format, tokenizer_format));
    return tokenizer_from(saved);
  } catch (const NewerFile&) {
    throw;
  } catch (const JsonError& problem) {
    throw Error(
        fmt::format("{}: the file is damaged or not a saved tokenizer; use another copy of it", problem.what()));
  } catch (const nlohmann::json::exception&) {
    throw damaged("a key is missing or has the wrong type");
  } catch (const std::invalid_argument& problem) {
    throw damaged(problem.what());
  } catch (const Error& problem) {
    throw damaged(problem.what());
  }
}

bool needs_utf8(const TokenizerConfig& config) {
  if (const auto* saved = std::get_if<SavedTokenizerConfig>(&config)) return read_saved(*saved)->needs_utf8();
  return !std::holds_alternative<ByteTokenizerConfig>(config);
}

const char* unit_of(const TokenizerConfig& config) {
  return std::holds_alternative<ByteTokenizerConfig>(config) ? "bytes" : "tokens";
}

bool learns_from_texts(const TokenizerConfig& config) {
  if (const auto* pieces = std::get_if<SentencePieceTokenizerConfig>(&config)) return is_trained(*pieces);
  return std::holds_alternative<WordTokenizerConfig>(config) || std::holds_alternative<CharTokenizerConfig>(config);
}

TokenizerConfig unsaved(TokenizerConfig config) {
  auto* const pieces = std::get_if<SentencePieceTokenizerConfig>(&config);
  if (pieces != nullptr && is_trained(*pieces)) pieces->model.clear();
  return config;
}

Boundary boundary_of(const TokenizerConfig& config) {
  const auto* pieces = std::get_if<SentencePieceTokenizerConfig>(&config);
  if (pieces != nullptr && is_trained(*pieces)) return SentencePieceTokenizer::word_boundary;
  // Where a text may be cut does not depend on the vocabulary.
  return [tokenizer = make_tokenizer(config, {})](std::string_view text, size_t at) {
    return tokenizer->boundary(text, at);
  };
}

}  // namespace capstan
