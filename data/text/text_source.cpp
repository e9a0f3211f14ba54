#include "data/text/text_source.hpp"

#include "core/base/error.hpp"
#include "data/files/fingerprint.hpp"
#include "data/text/cached_text.hpp"
#include "data/text/text_key.hpp"
#include "data/text/text_loading.hpp"

namespace capstan {
namespace {

bool is_large(const TextSourceConfig& config, const FileLists& lists) {
  if (config.cache.empty()) return false;
  size_t bytes = 0;
  for (const auto& files : lists) bytes += size_of_text(files);
  return bytes > static_cast<size_t>(config.cache_above_mb) * 1000000;
}

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
  data.tokenizer = tokenizer ? tokenizer : learn_tokenizer(config, text->pieces.train, nullptr);
  data.train = encode_to_memory(text->pieces.train, config.documents, *data.tokenizer, false);
  data.valid = encode_to_memory(text->pieces.valid, config.documents, *data.tokenizer, true);
  data.test = encode_to_memory(text->pieces.test, config.documents, *data.tokenizer, true);
  check_sizes(config, data.train.size(), data.valid.size());
  describe_corpora(config, data);
  data.fingerprint = Fingerprint().add(data.train.tokens).add(data.valid.tokens).hex();
  return data;
}

}  // namespace

TextData load_text(const TextSourceConfig& config, std::shared_ptr<const Tokenizer> tokenizer, const Tell& tell) {
  ProblemText problems("data");
  validate(config, problems);
  if (!problems.text().empty()) throw ConfigError(problems.text());
  const FileFilter filter{config.include, config.exclude};
  const FileLists lists{config.weights.empty() ? list_files(config.train, filter) : list_sources(config.train, filter),
                        list_files(config.valid, filter), list_files(config.test, filter)};
  return is_large(config, lists) ? load_cached_text(config, lists, std::move(tokenizer), tell)
                                 : load_to_memory(config, lists, std::move(tokenizer));
}

}  // namespace capstan
