// Reads a text to memory, or by way of the cache where it is large. tests/data/test_text_source.cpp.
#include "core/base/error.hpp"
#include "data/files/token_row.hpp"
#include "data/text/text_loading.hpp"
#include "data/text/text_source.hpp"

namespace capstan {
namespace {

TextCorpus encode_to_memory(const std::vector<Piece>& pieces, const DocumentsConfig& documents,
                            const Tokenizer& tokenizer, bool keep_text) {
  TextCorpus corpus;
  std::vector<int32_t> tokens;
  encode(
      pieces, documents, tokenizer, nullptr,
      [&](const std::vector<int32_t>& ids) { tokens.insert(tokens.end(), ids.begin(), ids.end()); },
      [&](const Piece& piece, int64_t begin, int64_t end) {
        const auto bytes = static_cast<int64_t>(piece.end - piece.begin);
        corpus.files.push_back(
            {piece.source->file.path, piece.source->file.name, begin, end, bytes, {}, piece.source->file.source});
        if (keep_text) corpus.files.back().text = [text = std::string(piece.open().view())] { return text; };
      });
  corpus.tokens = std::move(tokens);
  return corpus;
}

TextData load_to_memory(const TextSourceConfig& config, const FileLists& lists,
                        std::shared_ptr<const Tokenizer> tokenizer) {
  const auto text =
      read_split_text(config, lists, tokenizer.get(), {must_be_utf8(config, tokenizer.get()), "", nullptr});
  TextData data;
  data.left_out = text->left_out;
  data.tokenizer = tokenizer ? std::move(tokenizer) : learn_tokenizer(config, text->pieces.train, nullptr);
  for (const Split split : all_splits)
    data[split] = encode_to_memory(text->pieces[split], config.documents, *data.tokenizer, split != Split::train);
  check_sizes(config, data.train.size(), data.valid.size());
  describe_corpora(config, data);
  data.warnings = warnings_of(*text, config, data);
  data.fingerprint = Fingerprint().add(data.train.tokens).add(data.valid.tokens).hex();
  return data;
}

}  // namespace

TextData load_text(const TextSourceConfig& config, std::shared_ptr<const Tokenizer> tokenizer, const LogLine& log,
                   CacheUse cache) {
  check_valid("data", config);
  if (config.train.empty() && !tokenizer) throw ConfigError("data: train names no file");
  const FileLists lists = lists_of(config);
  if (is_large(config, lists))
    if (auto data = load_cached_text(config, lists, tokenizer, log, cache)) return std::move(*data);
  return load_to_memory(config, lists, std::move(tokenizer));
}

}  // namespace capstan
