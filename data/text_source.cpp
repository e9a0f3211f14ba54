#include "data/text_source.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/error.hpp"
#include "core/random.hpp"
#include "data/documents.hpp"
#include "data/file_list.hpp"
#include "data/fingerprint.hpp"
#include "data/text_file.hpp"
#include "data/utf8.hpp"

namespace capstan {
namespace {

struct TextFile {
  FoundFile file;
  std::string text;
};

/// A part of a file that belongs to one split.
struct Piece {
  const TextFile* source;
  std::string_view text;
};

struct Pieces {
  std::vector<Piece> train, valid, test;
};

/// The lines of a text that are UTF-8.
std::string valid_lines(std::string text, const std::string& path, BadRows& bad) {
  std::string kept;
  bool all = true;
  int64_t number = 1;
  for (size_t at = 0; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view line = std::string_view(text).substr(at, end - at);
    if (bad.guard([&] { check_utf8(line, path, number); })) {
      if (!all) kept += line;
    } else if (all) {
      all = false;
      kept = text.substr(0, at);
    }
    at = end;
  }
  return all ? std::move(text) : std::move(kept);
}

std::vector<TextFile> read_files(const std::vector<std::string>& paths, const TextSourceConfig& config, bool utf8,
                                 BadRows& bad, bool by_source) {
  std::vector<TextFile> files;
  const FileFilter filter{config.include, config.exclude};
  for (FoundFile& found : by_source ? list_sources(paths, filter) : list_files(paths, filter)) {
    std::string text = read_text_file(found.path);
    if (utf8) text = valid_lines(std::move(text), found.path, bad);
    files.push_back({std::move(found), std::move(text)});
  }
  return files;
}

using Border = std::function<size_t(std::string_view, size_t)>;

/// The last place at or before a share of the text where the tokenizer allows a cut.
size_t cut_position(std::string_view text, double share, const Border& border) {
  // 1 - 0.05 - 0.05 is a little less than 0.9: a product just below a whole number is that number.
  constexpr double rounding = 1e-12;
  return border(text, static_cast<size_t>(std::floor(static_cast<double>(text.size()) * share * (1 + rounding))));
}

void add_piece(std::vector<Piece>& pieces, const TextFile& file, size_t begin, size_t end) {
  if (end > begin) pieces.push_back({&file, std::string_view(file.text).substr(begin, end - begin)});
}

void split_tails(const std::vector<TextFile>& files, const Border& border, double valid, double test, Pieces& pieces) {
  for (const TextFile& file : files) {
    const size_t end = file.text.size();
    const size_t test_begin = test > 0 ? cut_position(file.text, 1 - test, border) : end;
    const size_t valid_begin = valid > 0 ? cut_position(file.text, 1 - valid - test, border) : test_begin;
    add_piece(pieces.train, file, 0, valid_begin);
    add_piece(pieces.valid, file, valid_begin, test_begin);
    add_piece(pieces.test, file, test_begin, end);
  }
}

void split_files(const std::vector<TextFile>& files, double valid, double test, Pieces& pieces) {
  std::vector<size_t> order(files.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::make_pair(hash_path(files[a].file.name), a) < std::make_pair(hash_path(files[b].file.name), b);
  });
  const auto share = [&](double fraction) {
    return fraction > 0
               ? std::max<size_t>(1, static_cast<size_t>(std::llround(static_cast<double>(files.size()) * fraction)))
               : 0;
  };
  const size_t valid_files = share(valid), test_files = share(test);
  if (valid_files + test_files >= files.size())
    throw Error(
        fmt::format("data: split by-file holds {} of {} files out and leaves none to train on; name more files, lower "
                    "the fractions, or use split: tail",
                    valid_files + test_files, files.size()));
  std::vector<int> splits(files.size(), 0);
  for (size_t i = 0; i < valid_files + test_files; ++i) splits[order[i]] = i < valid_files ? 1 : 2;
  for (size_t i = 0; i < files.size(); ++i)
    add_piece(splits[i] == 0   ? pieces.train
              : splits[i] == 1 ? pieces.valid
                               : pieces.test,
              files[i], 0, files[i].text.size());
}

void add_whole(const std::vector<TextFile>& files, std::vector<Piece>& pieces) {
  for (const TextFile& file : files) add_piece(pieces, file, 0, file.text.size());
}

TextCorpus encode(const std::vector<Piece>& pieces, const DocumentsConfig& documents, const Tokenizer& tokenizer,
                  bool keep_text) {
  TextCorpus corpus;
  corpus.end_of_document = end_of_document(documents, tokenizer);
  std::vector<int32_t> tokens;
  for (const Piece& piece : pieces) {
    TextCorpus::File file{piece.source->file.path,
                          piece.source->file.name,
                          static_cast<int64_t>(tokens.size()),
                          0,
                          static_cast<int64_t>(piece.text.size()),
                          keep_text ? std::string(piece.text) : std::string(),
                          piece.source->file.source};
    DocumentEncoder encoder(documents, tokenizer, piece.source->file.path);
    encoder.push(piece.text, tokens);
    encoder.finish(tokens);
    file.end = static_cast<int64_t>(tokens.size());
    corpus.files.push_back(std::move(file));
  }
  corpus.tokens = std::move(tokens);
  return corpus;
}

void check_marker(const DocumentsConfig& documents, const std::vector<Piece>& train) {
  const auto* const marker = std::get_if<MarkerDocumentsConfig>(&documents);
  if (marker == nullptr || std::any_of(train.begin(), train.end(), [marker](const Piece& piece) {
        return piece.text.find(marker->text) != std::string_view::npos;
      }))
    return;
  throw Error(
      fmt::format("data.documents.text: \"{}\" does not stand anywhere in the training text; correct it, or say "
                  "documents: file if each file is one document",
                  marker->text));
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

}  // namespace

int64_t TextCorpus::bytes() const {
  return std::accumulate(files.begin(), files.end(), int64_t{0},
                         [](int64_t sum, const File& file) { return sum + file.bytes; });
}

std::string TextData::fingerprint() const { return Fingerprint().add(train.tokens).add(valid.tokens).hex(); }

TextData load_text(const TextSourceConfig& config, std::shared_ptr<const Tokenizer> tokenizer) {
  const double valid = config.valid.empty() ? config.valid_fraction : 0,
               test = config.test.empty() ? config.test_fraction : 0;
  ProblemText problems("data");
  validate(config, problems);
  if (!problems.text().empty()) throw ConfigError(problems.text());
  const bool utf8 = tokenizer ? tokenizer->needs_utf8() : needs_utf8(config.tokenizer);
  BadRows bad(config.on_error, "line");
  const auto train_files = read_files(config.train, config, utf8, bad, !config.weights.empty());
  const auto valid_files = read_files(config.valid, config, utf8, bad, false);
  const auto test_files = read_files(config.test, config, utf8, bad, false);
  bad.check();
  Pieces pieces;
  if (valid + test > 0 && config.split == TextSplit::by_file) {
    split_files(train_files, valid, test, pieces);
  } else {
    Border border = !tokenizer ? border_of(config.tokenizer)
                               : [&](std::string_view text, size_t at) { return tokenizer->border(text, at); };
    if (has_documents(config.documents))
      border = [&](std::string_view text, size_t at) { return document_border(config.documents, text, at); };
    split_tails(train_files, border, valid, test, pieces);
  }
  add_whole(valid_files, pieces.valid);
  add_whole(test_files, pieces.test);

  check_marker(config.documents, pieces.train);
  TextData data;
  data.left_out = bad.summary();
  if (!tokenizer) {
    std::vector<std::string_view> texts;
    for (const Piece& piece : pieces.train)
      for (const std::string_view text : without_markers(config.documents, piece.text)) texts.push_back(text);
    tokenizer = make_tokenizer(config.tokenizer, texts);
  }
  data.tokenizer = std::move(tokenizer);
  data.train = encode(pieces.train, config.documents, *data.tokenizer, false);
  data.valid = encode(pieces.valid, config.documents, *data.tokenizer, true);
  data.test = encode(pieces.test, config.documents, *data.tokenizer, true);
  if (valid > 0 && data.valid.size() == 0)
    throw Error(
        fmt::format("data: a share of {} of the training text is no text to validate on; raise valid_fraction", valid));
  if (data.train.size() == 0)
    throw Error("data: no text is left to train on; add text, lower valid_fraction or name files to validate on");
  data.train.sources = weighted_sources(config, data.train.files);
  return data;
}

}  // namespace capstan
