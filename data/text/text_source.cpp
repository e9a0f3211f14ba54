#include "data/text/text_source.hpp"

#include <algorithm>
#include <numeric>

#include "core/base/error.hpp"
#include "data/files/fingerprint.hpp"
#include "data/text/documents.hpp"
#include "data/text/text_key.hpp"
#include "data/text/text_loading.hpp"

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

/// Files of one source lie behind each other.
std::vector<TextCorpus::Source> weighted_sources(const TextSourceConfig& config,
                                                 const std::vector<TextCorpus::File>& files) {
  std::vector<TextCorpus::Source> sources;
  for (size_t i = 0; i < config.weights.size(); ++i) {
    const int64_t begin = sources.empty() ? 0 : sources.back().end;
    sources.push_back({config.train[i], config.weights[i], begin, begin});
    for (const TextCorpus::File& file : files)
      if (file.source == i) sources.back().end = file.end;
  }
  return sources;
}

void check_marker(const DocumentsConfig& documents, const std::vector<Piece>& train) {
  const auto* const marker = std::get_if<MarkerDocumentsConfig>(&documents);
  if (marker == nullptr || std::any_of(train.begin(), train.end(), [marker](const Piece& piece) {
        return find(piece.open(), marker->text, 0) != std::string_view::npos;
      }))
    return;
  throw Error(
      fmt::format("data.documents.text: \"{}\" does not stand anywhere in the training text; correct it, or say "
                  "documents: file if each file is one document",
                  marker->text));
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
  Border border = tokenizer != nullptr ? border_of(*tokenizer) : border_of(config.tokenizer);
  if (has_documents(config.documents))
    border = [&](std::string_view all, size_t at) { return document_border(config.documents, all, at); };
  text->pieces = split_sources(text->sources[0], {config.split, share_of(config.valid, config.valid_fraction),
                                                  share_of(config.test, config.test_fraction), std::move(border)});
  add_whole(text->sources[1], text->pieces.valid);
  add_whole(text->sources[2], text->pieces.test);
  check_marker(config.documents, text->pieces.train);
  return text;
}

std::shared_ptr<const Tokenizer> learn_tokenizer(const TextSourceConfig& config, const std::vector<Piece>& train,
                                                 Progress* progress) {
  const auto* const marker = std::get_if<MarkerDocumentsConfig>(&config.documents);
  if (marker == nullptr) return make_tokenizer(config.tokenizer, texts_of(train, progress));
  const std::vector<Piece> parts = without(marker->text, train);
  return make_tokenizer(config.tokenizer, texts_of(parts, progress));
}

int64_t encode(const std::vector<Piece>& pieces, const DocumentsConfig& documents, const Tokenizer& tokenizer,
               Progress* progress, const std::function<void(const std::vector<int32_t>&)>& put,
               const std::function<void(const Piece&, int64_t, int64_t)>& file) {
  int64_t size = 0;
  for (const Piece& piece : pieces) {
    const int64_t begin = size;
    DocumentEncoder encoder(documents, tokenizer, piece.source->file.path);
    std::vector<int32_t> tokens;
    const auto give = [&] {
      size += static_cast<int64_t>(tokens.size());
      put(tokens);
      tokens.clear();
    };
    for_blocks(piece.open(progress), border_of(tokenizer), [&](std::string_view block) {
      encoder.push(block, tokens);
      give();
    });
    encoder.finish(tokens);
    give();
    file(piece, begin, size);
  }
  return size;
}

void describe_corpora(const TextSourceConfig& config, TextData& data) {
  for (TextCorpus* const corpus : {&data.train, &data.valid, &data.test})
    corpus->end_of_document = end_of_document(config.documents, *data.tokenizer);
  data.train.sources = weighted_sources(config, data.train.files);
}

void check_sizes(const TextSourceConfig& config, int64_t train, int64_t valid) {
  const double share = share_of(config.valid, config.valid_fraction);
  if (share > 0 && valid == 0)
    throw Error(
        fmt::format("data: a share of {} of the training text is no text to validate on; raise valid_fraction", share));
  if (train == 0)
    throw Error("data: no text is left to train on; add text, lower valid_fraction or name files to validate on");
}

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
