// Texts are tokenised in parts of 256 KB on all threads and taken in order (core/machine/in_order.hpp). Parts end where
// the tokenizer, or the end of a document, allows it, so the tokens are those of the whole text.
#include "data/text/text_loading.hpp"

#include <algorithm>
#include <filesystem>

#include "core/base/error.hpp"
#include "core/machine/in_order.hpp"
#include "data/files/split.hpp"
#include "data/files/text_file.hpp"
#include "data/tokenizers/texts.hpp"

namespace capstan {
namespace {

/// Throws Error for a marker that the training text does not have: all of it would be one document.
void check_marker(const DocumentsConfig& documents, const std::vector<Piece>& train) {
  const auto* const marker = std::get_if<MarkerDocumentsConfig>(&documents);
  if (marker == nullptr || std::any_of(train.begin(), train.end(), [marker](const Piece& piece) {
        return find(piece.open(), marker->text, 0) != std::string_view::npos;
      }))
    return;
  throw Error(
      fmt::format("data.documents.text: \"{}\" does not occur in the training text; correct it, or say "
                  "documents: file if each file is one document",
                  marker->text));
}

constexpr size_t part_bytes = size_t{1} << 18, tokens_at_once = size_t{1} << 18;

/// A stretch of a piece that one thread tokenises at once.
struct Part {
  const Piece* piece;
  std::string text;
  size_t passed;  // bytes of the piece up to here, since the part before
  bool ends_document, ends_piece;
};

}  // namespace

FileLists lists_of(const TextSourceConfig& config) {
  const FileFilter filter{config.include, config.exclude};
  const auto train = [&] {
    return config.weights.empty() ? list_files(config.train, filter) : list_sources(config.train, filter);
  };
  return {with_key(Split::train, train), with_key(Split::valid, [&] { return list_files(config.valid, filter); }),
          with_key(Split::test, [&] { return list_files(config.test, filter); })};
}

size_t size_of_text(const FileLists& lists) {
  size_t sum = 0;
  for (const Split split : all_splits)
    for (const FoundFile& file : lists[split]) {
      std::error_code problem;  // reading the file names it
      const auto size = std::filesystem::file_size(file.path, problem);
      if (!problem) sum += static_cast<size_t>(size) * (is_packed_name(file.path) ? 4 : 1);
    }
  return sum;
}

size_t SplitText::bytes() const {
  size_t sum = 0;
  for (const Split split : all_splits) sum += bytes_of(pieces[split]);
  return sum;
}

SplitText read_split_text(const TextSourceConfig& config, const FileLists& lists, const Tokenizer* tokenizer,
                          const SourceInputs& inputs, Progress* progress) {
  const bool utf8 = tokenizer != nullptr ? tokenizer->needs_utf8() : needs_utf8(config.tokenizer);
  SplitText text;
  BadRows bad(config.on_error, "line");
  for (const Split split : all_splits)
    text.sources[split] = with_key(split, [&] { return read_sources(lists[split], utf8, inputs, progress, bad); });
  bad.check();
  text.left_out = bad.summary();
  text.bad_lines = bad.listed();
  Boundary boundary = tokenizer != nullptr ? boundary_of(*tokenizer) : boundary_of(config.tokenizer);
  if (has_documents(config.documents))
    boundary = [&](std::string_view content, size_t at) { return document_boundary(config.documents, content, at); };
  text.pieces = split_sources(text.sources, config, boundary);
  if (!config.train.empty()) check_marker(config.documents, text.pieces.train);
  return text;
}

std::shared_ptr<const Tokenizer> learn_tokenizer(const TextSourceConfig& config, const std::vector<Piece>& train,
                                                 Progress* progress) {
  const auto* const marker = std::get_if<MarkerDocumentsConfig>(&config.documents);
  if (marker == nullptr) return make_tokenizer(config.tokenizer, texts_of(train, progress));
  const std::vector<Piece> parts = without(marker->text, train);
  return make_tokenizer(config.tokenizer, texts_of(parts, progress));
}

void encode(const std::vector<Piece>& pieces, const DocumentsConfig& documents, const Tokenizer& tokenizer,
            Progress* progress, const std::function<void(const std::vector<int32_t>&)>& put,
            const std::function<void(const Piece&)>& ended) {
  const std::optional<int32_t> end = end_of_document(documents, tokenizer);
  std::vector<int32_t> tokens;
  InOrder<Part, std::vector<int32_t>> parts(
      [&](const Part& part) {
        if (progress != nullptr) progress->add(static_cast<double>(part.passed));
        return tokenizer.encode(part.text, part.piece->source->file.path);
      },
      [&](const Part& part, auto& outcome) {
        const std::vector<int32_t>& ids = outcome.get();
        tokens.insert(tokens.end(), ids.begin(), ids.end());
        if (part.ends_document && end) tokens.push_back(*end);
        if (!part.ends_piece && tokens.size() < tokens_at_once) return;
        put(tokens);
        tokens.clear();
        if (part.ends_piece) ended(*part.piece);
      });
  for (const Piece& piece : pieces) {
    size_t passed = 0;
    const auto add = [&](std::string_view text, bool ends_document, bool ends_piece = false) {
      parts.add({&piece, std::string(text), std::exchange(passed, 0), ends_document, ends_piece}, text.size());
    };
    const auto visit = [&](std::string_view part, bool last) { add(part, last); };
    DocumentCutter cutter(documents, boundary_of(tokenizer));
    for_blocks(
        piece.open(), boundary_of(tokenizer),
        [&](std::string_view block) {
          passed += block.size();
          if (end)
            cutter.push(block, visit);
          else
            add(block, false);
        },
        part_bytes);
    cutter.finish(visit);
    add("", false, true);
  }
  parts.finish();
}

void check_sizes(const TextSourceConfig& config, int64_t train, int64_t valid) {
  if (config.valid_share() > 0 && valid == 0)
    throw Error(fmt::format("data: {} of the training text is too little to validate on; raise valid_fraction",
                            config.valid_share()));
  if (train == 0 && !config.train.empty())
    throw Error("data: no text is left to train on; add text, lower valid_fraction or list files in data.valid");
}

}  // namespace capstan
