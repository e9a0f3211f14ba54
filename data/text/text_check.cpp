// `capstan data check` of text (check_text() of text_loading.hpp), and the warnings of a training about it. All of the
// text is read and tokenised, in pieces; repeated texts are found by hashes, of which a sample is kept when they are
// many. The report is the same for text in memory and from files: tests/data/labelled/test_checks.cpp.
#include <algorithm>
#include <optional>

#include "core/base/error.hpp"
#include "core/io/hash.hpp"
#include "core/strings/strings.hpp"
#include "data/checks/copies.hpp"
#include "data/checks/duplicates.hpp"
#include "data/checks/report.hpp"
#include "data/files/split.hpp"
#include "data/files/text_file.hpp"
#include "data/text/text_loading.hpp"

namespace capstan {
namespace {

/// The counts of a split. A text is a document or, where the text has none, a line that is not blank.
struct SplitCounts {
  int64_t files = 0, bytes = 0, tokens = 0, unknown = 0, texts = 0, text_bytes = 0;
};

/// Counts the texts and tokens of the splits.
class TextCounts {
 public:
  explicit TextCounts(const DocumentsConfig& documents)
      : has_documents_(capstan::has_documents(documents)),
        cut_(has_documents_ ? documents : DocumentsConfig(LineDocumentsConfig{})) {}

  void add_texts(size_t split, const std::vector<Piece>& pieces);
  void add_tokens(size_t split, const std::vector<int32_t>& tokens, std::optional<int32_t> unknown) {
    of_[split].tokens += static_cast<int64_t>(tokens.size());
    if (unknown) of_[split].unknown += std::count(tokens.begin(), tokens.end(), *unknown);
  }
  void finish() { duplicates_ = marks_.duplicates(); }

  const SplitCounts& of(size_t split) const { return of_[split]; }
  const Duplicates& duplicates() const { return duplicates_; }
  const char* noun() const { return has_documents_ ? "documents" : "lines"; }
  bool has_documents() const { return has_documents_; }
  /// Are repeated texts counted in a sample?
  bool sampled() const { return marks_.stride() > 1; }

 private:
  bool has_documents_;
  DocumentsConfig cut_;
  std::array<SplitCounts, checked_splits> of_;
  MarkSample marks_;
  Duplicates duplicates_;
};

void TextCounts::add_texts(size_t split, const std::vector<Piece>& pieces) {
  SplitCounts& counts = of_[split];
  for (const Piece& piece : pieces) {
    ++counts.files;
    counts.bytes += static_cast<int64_t>(piece.end - piece.begin);
    DocumentCutter cutter(cut_, anywhere);
    std::optional<Hash> open;  // hash of a text that comes in parts
    int64_t bytes = 0;
    const DocumentCutter::Visit visit = [&](std::string_view part, bool last) {
      bytes += static_cast<int64_t>(part.size());
      if (!last && !open) open.emplace();
      if (open) open->add(part);
      if (!last) return;
      const uint64_t hash = open ? open->bits()[0] : copy_hash(part);
      marks_.add({hash, static_cast<uint32_t>(split), 0, static_cast<uint64_t>(counts.texts), bytes});
      ++counts.texts;
      counts.text_bytes += bytes;
      open.reset();
      bytes = 0;
    };
    for_blocks(piece.open(), anywhere, [&](std::string_view block) { cutter.push(block, visit); });
    cutter.finish(visit);
  }
}

void warn_of_unknown(const TextCounts& counts, std::vector<DataWarning>& warnings) {
  constexpr double many = 0.05;
  for (size_t s = 0; s < checked_splits; ++s) {
    const double part = share(counts.of(s).unknown, counts.of(s).tokens);
    if (part > many)
      warnings.push_back(
          {"unknown",
           fmt::format("{}: {} of the tokens are <unk>, text that the vocabulary does not cover; enlarge the "
                       "vocabulary (data.tokenizer.max_size, min_count), or set data.tokenizer=sentencepiece",
                       to_string(all_splits[s]), percent(part))});
  }
}

/// Lines occur again in any text, so shared lines are worth a warning only when they are half of a split or more; a
/// shared document always is.
void warn_of_shared(const TextCounts& counts, std::vector<DataWarning>& warnings) {
  const double many = counts.has_documents() ? 0 : 0.5;
  for (size_t s = 1; s < checked_splits; ++s) {
    const Duplicates::OfSplit& twice = counts.duplicates().splits[s];
    const double part = share(twice.also_in[0].weight, counts.of(s).text_bytes);
    if (part > many)
      warnings.push_back(
          {"shared-texts",
           fmt::format(
               "{}: {}{} of {} {} ({} of their bytes) are also in train, so its loss will be too low; remove the "
               "copies from one of the two",
               to_string(all_splits[s]), counts.sampled() ? "about " : "", twice.also_in[0].texts, counts.of(s).texts,
               counts.noun(), percent(part))});
  }
}

DataTable splits_table(const TextCounts& counts) {
  const std::string noun = counts.noun();
  DataTable table{"splits",
                  counts.sampled() ? "Splits (repeated and shared texts estimated from a sample)" : "Splits",
                  {"split", "files", "bytes", "tokens", "bytes per token", "<unk> %", noun, "repeated", "repeated %",
                   "in train", "in train %", "in valid"},
                  {}};
  for (size_t s = 0; s < checked_splits; ++s) {
    const SplitCounts& split = counts.of(s);
    if (split.bytes == 0) continue;
    const Duplicates::OfSplit& twice = counts.duplicates().splits[s];
    table.rows.push_back({std::string(to_string(all_splits[s])), split.files, split.bytes, split.tokens,
                          share(split.bytes, split.tokens), 100 * share(split.unknown, split.tokens), split.texts,
                          twice.repeated.texts, 100 * share(twice.repeated.weight, split.text_bytes),
                          twice.also_in[0].texts, 100 * share(twice.also_in[0].weight, split.text_bytes),
                          twice.also_in[1].texts});
  }
  return table;
}

void warn_of_files(const FirstFew& unusual, std::vector<DataWarning>& warnings) {
  if (unusual.count() == 0) return;
  warnings.push_back({"encoding", fmt::format("unusual bytes in {}; convert such files to UTF-8 with one kind of line "
                                              "end, unless they are meant to be so",
                                              unusual.text("; "))});
}

/// A training says which files are not UTF-8, where the tokenizer lets them pass.
void warn_of_bytes(const SplitText& text, std::vector<DataWarning>& warnings) {
  FirstFew unusual;
  for (const Split split : all_splits)
    for (const SourceText& source : text.sources[split]) {
      EncodingCheck check;
      for_blocks(source.open(0, source.size), anywhere, [&](std::string_view block) { check.push(block); });
      EncodingFacts facts;
      facts.invalid = check.finish().invalid;
      if (facts.invalid > 0) unusual.add([&] { return source.file.path + ": " + facts.remarks(); });
    }
  warn_of_files(unusual, warnings);
}

/// The size of each file, and what is unusual about its bytes. Files without remarks are listed only where there are
/// few.
DataTable files_table(const FileLists& lists, const LogLine& log, std::vector<DataWarning>& warnings) {
  constexpr size_t listed = 20;
  const bool few = lists.train.size() + lists.valid.size() + lists.test.size() <= listed;
  DataTable table{"files", few ? "Files" : "Files with unusual bytes", {"file", "key", "bytes", "remarks"}, {}};
  FirstFew unusual;
  Progress progress(log, "data: checking the bytes", static_cast<double>(size_of_text(lists)));
  for (const Split split : all_splits)
    for (const FoundFile& file : lists[split]) {
      EncodingCheck check;
      with_key(split, [&] {
        TextReader reader(file.path, is_packed_name(file.path) ? max_file_mb : any_file_mb);
        while (!reader.at_end()) {
          const std::string_view part = reader.piece();
          check.push(part);
          progress.add(part.size());
        }
      });
      const EncodingFacts facts = check.finish();
      const std::string remarks = facts.remarks();
      if (!remarks.empty()) unusual.add([&] { return fmt::format("{}: {}", file.path, remarks); });
      if (few || !remarks.empty())
        table.rows.push_back({file.path, fmt::format("data.{}", to_string(split)), facts.bytes, remarks});
    }
  warn_of_files(unusual, warnings);
  return table;
}

void count_tokens(const SplitText& text, const TextSourceConfig& config, const LogLine& log, TextCounts& counts) {
  Progress learning(log, "data: learning the tokenizer", 0);
  const auto tokenizer = learn_tokenizer(config, text.pieces.train, &learning);
  Progress progress(log, "data: tokenising", static_cast<double>(text.bytes()));
  for (size_t s = 0; s < checked_splits; ++s) {
    const std::vector<Piece>& pieces = text.pieces[all_splits[s]];
    counts.add_texts(s, pieces);
    encode(
        pieces, config.documents, *tokenizer, &progress,
        [&](const std::vector<int32_t>& tokens) { counts.add_tokens(s, tokens, tokenizer->unknown_token()); },
        [](const Piece&) {});
  }
  counts.finish();
}

}  // namespace

std::vector<DataWarning> warnings_of(const SplitText& text, const TextSourceConfig& config, const TextData& data) {
  if (text.bytes() > TextSourceConfig::large_text) return {};
  TextCounts counts(config.documents);
  for (size_t s = 0; s < checked_splits; ++s) {
    counts.add_texts(s, text.pieces[all_splits[s]]);
    data[all_splits[s]].tokens.for_blocks(
        [&](const std::vector<int32_t>& tokens) { counts.add_tokens(s, tokens, data.tokenizer->unknown_token()); });
  }
  counts.finish();
  std::vector<DataWarning> warnings;
  if (!data.tokenizer->needs_utf8()) warn_of_bytes(text, warnings);
  warn_of_unknown(counts, warnings);
  warn_of_shared(counts, warnings);
  return warnings;
}

DataReport check_text(const TextSourceConfig& checked, const SourceInputs& inputs) {
  TextSourceConfig config = checked;
  config.tokenizer = unsaved(config.tokenizer);
  config.on_error = OnError::skip;  // the report counts the other lines, too
  const FileLists lists = lists_of(config);
  DataReport report;
  DataTable files = files_table(lists, inputs.log, report.warnings);
  const SplitText text = read_split_text(config, lists, nullptr, inputs, nullptr);
  if (checked.on_error == OnError::stop)
    report.errors = text.bad_lines;
  else
    for (const std::string& line : text.left_out) report.warnings.push_back({"left-out", line});
  TextCounts counts(config.documents);
  count_tokens(text, config, inputs.log, counts);
  warn_of_unknown(counts, report.warnings);
  warn_of_shared(counts, report.warnings);
  try {
    check_sizes(config, counts.of(0).tokens, counts.of(1).tokens);
  } catch (const Error& problem) {
    report.errors.emplace_back(problem.what());
  }
  if (counts.of(0).tokens <= config.sequence_length)
    report.errors.push_back(fmt::format(
        "data: the training text has {} tokens, not more than one window of data.sequence_length = {}; add text, or "
        "lower data.sequence_length",
        counts.of(0).tokens, config.sequence_length));
  report.tables = {splits_table(counts), std::move(files)};
  return report;
}

}  // namespace capstan
