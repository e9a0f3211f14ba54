// Texts are tokenised in parts of 256 KB on all threads and taken in order (core/machine/in_order.hpp). Parts end where
// the tokenizer, or the end of a document, allows it, so the tokens are those of the whole text.
#include "data/text/text_loading.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/machine/in_order.hpp"
#include "data/files/split.hpp"
#include "data/files/text_file.hpp"
#include "data/files/token_row.hpp"
#include "data/tokenizers/texts.hpp"

namespace capstan {
namespace {

/// Share of the training text held out for a split that has no files of its own.
double share_of(const std::vector<std::string>& files, double fraction) { return files.empty() ? fraction : 0; }

/// Where each weighted source begins and ends in the tokens. The files of a source follow one another.
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

bool is_large(const TextSourceConfig& config, const FileLists& lists) {
  if (config.cache.empty()) return false;
  size_t bytes = 0;
  for (const auto& files : lists) bytes += size_of_text(files);
  return bytes > static_cast<size_t>(config.cache_above_mb) * 1000000;
}

FileLists lists_of(const TextSourceConfig& config) {
  const FileFilter filter{config.include, config.exclude};
  const auto train = [&] {
    return config.weights.empty() ? list_files(config.train, filter) : list_sources(config.train, filter);
  };
  return {with_key(Split::train, train), with_key(Split::valid, [&] { return list_files(config.valid, filter); }),
          with_key(Split::test, [&] { return list_files(config.test, filter); })};
}

bool must_be_utf8(const TextSourceConfig& config, const Tokenizer* tokenizer) {
  return tokenizer != nullptr ? tokenizer->needs_utf8() : needs_utf8(config.tokenizer);
}

std::unique_ptr<const SplitText> read_split_text(const TextSourceConfig& config, const FileLists& lists,
                                                 const Tokenizer* tokenizer, const ReadRule& rule) {
  auto text = std::make_unique<SplitText>();
  BadRows bad(config.on_error, "line");
  for (size_t i = 0; i < lists.size(); ++i) {
    ReadRule list_rule = rule;
    if (!list_rule.copies.empty()) list_rule.copies += fmt::format("{}-", i);
    text->sources[i] = with_key(all_splits[i], [&] { return read_sources(lists[i], list_rule, bad); });
  }
  bad.check();
  text->left_out = bad.summary();
  text->bad_lines = bad.listed();
  Boundary boundary = tokenizer != nullptr ? boundary_of(*tokenizer) : boundary_of(config.tokenizer);
  if (has_documents(config.documents))
    boundary = [&](std::string_view content, size_t at) { return document_boundary(config.documents, content, at); };
  text->pieces = split_sources(text->sources[0], {config.split, share_of(config.valid, config.valid_fraction),
                                                  share_of(config.test, config.test_fraction), std::move(boundary)});
  add_whole(text->sources[1], text->pieces.valid);
  add_whole(text->sources[2], text->pieces.test);
  if (!config.train.empty()) check_marker(config.documents, text->pieces.train);
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
  const std::optional<int32_t> end = end_of_document(documents, tokenizer);
  std::vector<int32_t> tokens;
  int64_t given = 0, begin = 0;
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
        given += static_cast<int64_t>(tokens.size());
        tokens.clear();
        if (part.ends_piece) file(*part.piece, std::exchange(begin, given), given);
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
  return given;
}

void describe_corpora(const TextSourceConfig& config, TextData& data) {
  for (const Split split : all_splits) data[split].end_of_document = end_of_document(config.documents, *data.tokenizer);
  data.train.sources = weighted_sources(config, data.train.files);
}

void check_sizes(const TextSourceConfig& config, int64_t train, int64_t valid) {
  const double share = share_of(config.valid, config.valid_fraction);
  if (share > 0 && valid == 0)
    throw Error(fmt::format("data: {} of the training text is too little to validate on; raise valid_fraction", share));
  if (train == 0 && !config.train.empty())
    throw Error("data: no text is left to train on; add text, lower valid_fraction or list files in data.valid");
}

namespace {

struct stat status_of(const FoundFile& file) {
  struct stat status {};
  if (::stat(file.path.c_str(), &status) != 0) throw_file_error("read", file.path, errno);
  return status;
}

/// A file that changed less than two seconds ago may change again without a new date: its clock is that coarse.
bool changed_just_now(const std::vector<FoundFile>& files) {
  for (const FoundFile& file : files)
    if (status_of(file).st_ctim.tv_sec + 2 > std::time(nullptr)) return true;
  return false;
}

/// The key in a note of key_of_content(); empty if there is none, or it is damaged.
std::string noted_key(const std::string& note) {
  std::error_code absent;
  if (std::filesystem::file_size(note, absent) != 32 || absent) return "";
  const std::string key = read_file(note);
  return key.find_first_not_of("0123456789abcdef") == std::string::npos ? key : "";
}

}  // namespace

size_t size_of_text(const std::vector<FoundFile>& files) {
  size_t sum = 0;
  for (const FoundFile& file : files)
    sum += static_cast<size_t>(status_of(file).st_size) * (is_packed_name(file.path) ? 4 : 1);
  return sum;
}

std::string state_of_files(const std::vector<FoundFile>& files) {
  Fingerprint state;
  for (const FoundFile& file : files) {
    const struct stat status = status_of(file);
    state.add(std::filesystem::absolute(file.path).string()).add(file.name);
    state.add(std::vector<int64_t>{static_cast<int64_t>(status.st_dev), static_cast<int64_t>(status.st_ino),
                                   status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
                                   status.st_ctim.tv_nsec});
  }
  return state.hex();
}

std::string key_of_content(const std::vector<FoundFile>& files, const std::string& folder, const LogLine& log,
                           CacheUse use) {
  const std::string state = state_of_files(files), note = folder + "/" + state;
  if (std::string key = noted_key(note); !key.empty()) return key;
  const bool may_be_noted = use == CacheUse::write && !changed_just_now(files);
  size_t bytes = 0;
  for (const FoundFile& file : files) bytes += static_cast<size_t>(status_of(file).st_size);
  Progress progress(log, "data: reading", bytes);
  Fingerprint content;
  for (const FoundFile& file : files) {
    const auto mapped = std::make_shared<const MappedFile>(file.path);
    content.add(file.name).begin(mapped->size());
    for_blocks(
        Text(mapped, 0, mapped->size(), &progress), [](std::string_view, size_t at) { return at; },
        [&](std::string_view block) { content.part(block); });
  }
  const std::string key = content.hex();
  if (!may_be_noted || state_of_files(files) != state) return key;
  make_folders(folder);
  replace_file(note, key);
  return key;
}

}  // namespace capstan
