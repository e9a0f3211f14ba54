#include "data/text_source.hpp"

#include <numeric>

#include "core/error.hpp"
#include "data/fingerprint.hpp"
#include "data/text_key.hpp"
#include "data/text_loading.hpp"

namespace capstan {
namespace {

/// Share of the training text held out for a split that has no files of its own.
double share_of(const std::vector<std::string>& files, double fraction) { return files.empty() ? fraction : 0; }

bool is_large(const TextSourceConfig& config, const FileLists& lists) {
  if (config.cache.empty()) return false;
  size_t bytes = 0;
  for (const auto& files : lists) bytes += size_of_text(files);
  return bytes > static_cast<size_t>(config.cache_above_mb) * 1000000;
}

TextCorpus encode_to_memory(const std::vector<Piece>& pieces, const Tokenizer& tokenizer, bool keep_text) {
  TextCorpus corpus;
  std::vector<int32_t> tokens;
  encode(
      pieces, tokenizer, nullptr,
      [&](const std::vector<int32_t>& ids) { tokens.insert(tokens.end(), ids.begin(), ids.end()); },
      [&](const Piece& piece, int64_t begin, int64_t end) {
        const auto bytes = static_cast<int64_t>(piece.end - piece.begin);
        corpus.files.push_back({piece.source->file.path, piece.source->file.name, begin, end, bytes});
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
  data.tokenizer = tokenizer ? tokenizer : make_tokenizer(config.tokenizer, texts_of(text->pieces.train, nullptr));
  data.train = encode_to_memory(text->pieces.train, *data.tokenizer, false);
  data.valid = encode_to_memory(text->pieces.valid, *data.tokenizer, true);
  data.test = encode_to_memory(text->pieces.test, *data.tokenizer, true);
  check_sizes(config, data.train.size(), data.valid.size());
  data.fingerprint = Fingerprint().add(data.train.tokens).add(data.valid.tokens).hex();
  return data;
}

}  // namespace

int64_t TextCorpus::bytes() const {
  return std::accumulate(files.begin(), files.end(), int64_t{0},
                         [](int64_t sum, const File& file) { return sum + file.bytes; });
}

bool must_be_utf8(const TextSourceConfig& config, const Tokenizer* tokenizer) {
  return tokenizer != nullptr ? tokenizer->needs_utf8() : needs_utf8(config.tokenizer);
}

std::unique_ptr<const SplitText> read_split_text(const TextSourceConfig& config, const FileLists& lists,
                                                 const Tokenizer* tokenizer, const ReadRule& rule) {
  auto text = std::make_unique<SplitText>();
  BadRows bad(config.on_error, "line");
  for (size_t i = 0; i < lists.size(); ++i) text->sources[i] = read_sources(lists[i], rule, bad);
  bad.check();
  text->left_out = bad.summary();
  text->pieces =
      split_sources(text->sources[0], {config.split, share_of(config.valid, config.valid_fraction),
                                       share_of(config.test, config.test_fraction),
                                       tokenizer != nullptr ? border_of(*tokenizer) : border_of(config.tokenizer)});
  add_whole(text->sources[1], text->pieces.valid);
  add_whole(text->sources[2], text->pieces.test);
  return text;
}

int64_t encode(const std::vector<Piece>& pieces, const Tokenizer& tokenizer, Progress* progress,
               const std::function<void(const std::vector<int32_t>&)>& put,
               const std::function<void(const Piece&, int64_t, int64_t)>& file) {
  int64_t size = 0;
  for (const Piece& piece : pieces) {
    const int64_t begin = size;
    for_blocks(piece.open(progress), border_of(tokenizer), [&](std::string_view block) {
      const std::vector<int32_t> ids = tokenizer.encode(block, piece.source->file.path);
      put(ids);
      size += static_cast<int64_t>(ids.size());
    });
    file(piece, begin, size);
  }
  return size;
}

void check_sizes(const TextSourceConfig& config, int64_t train, int64_t valid) {
  const double share = share_of(config.valid, config.valid_fraction);
  if (share > 0 && valid == 0)
    throw Error(
        fmt::format("data: a share of {} of the training text is no text to validate on; raise valid_fraction", share));
  if (train == 0) throw Error("data: no text is left to train on; add text or lower valid_fraction");
}

TextData load_text(const TextSourceConfig& config, std::shared_ptr<const Tokenizer> tokenizer, const Tell& tell) {
  const double valid = share_of(config.valid, config.valid_fraction),
               test = share_of(config.test, config.test_fraction);
  if (valid + test >= 1)
    throw ConfigError(fmt::format("data: valid_fraction {} and test_fraction {} leave no training text", valid, test));
  if (config.overlap >= config.sequence_length)
    throw ConfigError(
        fmt::format("data: overlap {} must be less than sequence_length {}", config.overlap, config.sequence_length));
  const FileFilter filter{config.include, config.exclude};
  const FileLists lists{list_files(config.train, filter), list_files(config.valid, filter),
                        list_files(config.test, filter)};
  return is_large(config, lists) ? load_cached_text(config, lists, std::move(tokenizer), tell)
                                 : load_to_memory(config, lists, std::move(tokenizer));
}

}  // namespace capstan
