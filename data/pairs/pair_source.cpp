// Rows are read by data/formats, a share is held out by a draw, and sources and targets are tokenised on all threads,
// in order. The end of a document and the separator are the two ids after the vocabulary.
#include "data/pairs/pair_source.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "core/config/settings.hpp"
#include "core/machine/in_order.hpp"
#include "core/strings/strings.hpp"
#include "core/strings/utf8.hpp"
#include "data/checks/copies.hpp"
#include "data/checks/report.hpp"
#include "data/files/file_list.hpp"
#include "data/files/split.hpp"
#include "data/files/text_file.hpp"
#include "data/formats/table_columns.hpp"
#include "data/formats/table_head.hpp"
#include "data/pairs/packed_pairs.hpp"

namespace capstan {
namespace {

struct PairRow {
  std::string source, target, place;
};

/// One split: tokens, and what is known of them.
struct PairSplit {
  ExampleSet pairs;
  std::vector<std::string> targets;       // the texts of the targets; none of training
  std::vector<int64_t> sources, lengths;  // tokens of each source before it is cut, and of each target
  int64_t cut = 0;                        // sources that were cut
  int64_t unknown = 0;                    // tokens that stand for what the vocabulary does not have
  int64_t rewritten = 0;                  // targets that the tokenizer writes in another way, without unknown words
};

struct PairData : PerSplit<PairSplit>, SourceContent {};

std::vector<PairRow> read_rows(const PairSourceConfig& config, const std::vector<std::string>& paths, Split split,
                               BadRows& bad, bool utf8) {
  return with_key(split, [&] {
    std::vector<PairRow> rows;
    for (const FoundFile& file : list_files(paths)) {
      const TableFormat& format = format_of(file.path);
      const std::string content = read_text_file(file.path);
      const int64_t bad_before = bad.count();
      auto read = read_table(content, file.path, format, pair_columns(config, format), bad, utf8);
      if (read.empty() && bad.count() == bad_before) throw Error(fmt::format("{}: holds no pairs", file.path));
      for (LabelledText& row : read)
        rows.push_back({std::move(row.text), std::move(row.label), fmt::format("{}:{}", file.path, row.line)});
    }
    return rows;
  });
}

/// Moves a share of the rows, at least one and not all, to the result; both keep their order. Rows of one source stay
/// together.
std::vector<PairRow> hold_out(std::vector<PairRow>& rows, double fraction) {
  std::vector<uint64_t> hashes;
  for (const PairRow& row : rows) hashes.push_back(copy_hash(row.source));
  const std::vector<Copy> copies = find_copies(hashes);
  const std::vector<size_t> drawn_from = places_but(copies, rows.size());
  const size_t count = drawn_from.size();
  if (count < 2 || fraction <= 0) return {};
  const auto share = static_cast<size_t>(std::llround(static_cast<double>(count) * fraction));
  const RandomKey key = random_key(0, "held-out pairs");
  std::vector<bool> held(rows.size(), false);
  for (size_t i = 0; i < std::clamp<size_t>(share, 1, count - 1); ++i)
    held[drawn_from[permuted(i, count, key, 0)]] = true;
  mark_copies(copies, held);
  return take_marked(rows, held);
}

struct EncodedPair {
  std::vector<int32_t> source, target;
  int64_t length = 0;      // of the source before it was cut
  bool rewritten = false;  // the tokenizer writes the target in another way
};

/// Tokenises on all threads; pairs and errors are in the order of the rows.
PairSplit encode(const PairSourceConfig& config, std::vector<PairRow> rows, const Tokenizer& tokenizer, Split split,
                 const std::string& scratch, BadRows& bad) {
  const auto end = static_cast<int32_t>(tokenizer.vocabulary_size());
  const TextRule rule = facts(config).text;
  PairSplit result;
  result.pairs = ExampleSet(scratch);
  const auto work = [&](PairRow* row) {
    EncodedPair pair;
    pair.source = encode_text({row->source}, tokenizer, rule, row->place, &pair.length);
    pair.target = tokenizer.encode(row->target, row->place);
    const auto none = tokenizer.unknown_token();
    pair.rewritten = (!none || std::count(pair.target.begin(), pair.target.end(), *none) == 0) &&
                     tokenizer.decode(pair.target) != row->target;
    return pair;
  };
  InOrder<PairRow*, EncodedPair> encoded(work, [&](PairRow* const pair, auto& outcome) {
    bad.guard([&] {
      PairRow& row = *pair;
      const auto& [source, target, length, rewritten] = outcome.get();
      if (target.empty()) throw Error(fmt::format("{}: the target is empty", row.place));
      const auto whole = static_cast<int64_t>(source.size() + target.size()) + 2;
      if (whole > config.max_length)
        throw Error(
            fmt::format("{}: the pair has {} tokens ({} of the source, {} of the target, start and separator), more "
                        "than max_length = "
                        "{}; raise it (and what the model can take), or lower max_source: targets are never cut",
                        row.place, whole, source.size(), target.size(), config.max_length));
      add_pair(result.pairs, source, target, end, end + 1);
      if (const auto none = tokenizer.unknown_token())
        result.unknown +=
            std::count(source.begin(), source.end(), *none) + std::count(target.begin(), target.end(), *none);
      result.sources.push_back(length);
      result.lengths.push_back(static_cast<int64_t>(target.size()));
      result.cut += length > static_cast<int64_t>(source.size()) ? 1 : 0;
      result.rewritten += rewritten ? 1 : 0;
      if (split != Split::train) result.targets.push_back(std::move(row.target));
    });
  });
  for (PairRow& row : rows) encoded.add(&row, row.source.size() + row.target.size());
  encoded.finish();
  return result;
}

std::vector<DataWarning> warnings_of(const PairSourceConfig& config, const PairData& data) {
  std::vector<DataWarning> warnings;
  for (const Split split : all_splits) {
    const PairSplit& part = data[split];
    const auto warn = [&](const char* check, int64_t count, int64_t all, const std::string& what) {
      constexpr int64_t many = 20;  // more than one of so many is worth a warning
      if (many * count > all)
        warnings.push_back({check, fmt::format("{}: {} of {} {}", to_string(split), count, all, what)});
    };
    warn("truncated", part.cut, part.pairs.size(),
         fmt::format("sources are longer than max_source = {} and are cut; raise it", config.max_source));
    warn("rewritten", part.rewritten, part.pairs.size(),
         "targets are written in another way by this tokenizer, which keeps neither blanks nor upper case as they are; "
         "if they matter, set data.tokenizer=byte or data.tokenizer=sentencepiece");
    warn("unknown", part.unknown, part.pairs.token_count(),
         "tokens are <unk>, text that the vocabulary does not cover; set data.tokenizer=byte or "
         "data.tokenizer=sentencepiece");
  }
  return warnings;
}

/// The only column whose name, in lower case, is one of `names`; -1 unless there is exactly one.
int column_named(const std::vector<std::string>& header, const std::set<std::string>& names) {
  int found = -1;
  for (size_t c = 0; c < header.size(); ++c) {
    if (names.count(lower_case(header[c])) == 0) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(c);
  }
  return found;
}

PairData load(const PairSourceConfig& config, const SourceInputs& inputs, BadRows& bad) {
  std::shared_ptr<const Tokenizer> tokenizer = inputs.tokenizer;
  if (config.train.empty() && !tokenizer) throw ConfigError("data: train names no file");
  const bool utf8 = tokenizer ? tokenizer->needs_utf8() : needs_utf8(config.tokenizer);
  PerSplit<std::vector<PairRow>> rows;
  for (const Split split : all_splits)
    if (const auto& paths = part_of(config, split); !paths.empty())
      rows[split] = read_rows(config, paths, split, bad, utf8);
  const auto check_train = [&](bool any_left) {
    bad.check(any_left || config.train.empty());
    if (!any_left && !config.train.empty())
      throw Error(fmt::format("{}: no row has a usable pair", join_first(config.train)));
  };
  check_train(!rows.train.empty());
  if (config.valid.empty()) rows.valid = hold_out(rows.train, config.valid_fraction);
  PairData data;
  if (!tokenizer) {
    std::vector<std::string_view> texts;
    for (const PairRow& row : rows.train) {
      texts.push_back(row.source);
      texts.push_back(row.target);
    }
    tokenizer = make_tokenizer(config.tokenizer, texts);
  }
  data.tokenizer = std::move(tokenizer);
  for (const Split split : all_splits)
    data[split] = encode(config, std::move(rows[split]), *data.tokenizer, split, inputs.scratch, bad);
  check_train(data[Split::train].pairs.size() > 0);
  data.left_out = bad.summary();
  data.warnings = warnings_of(config, data);
  return data;
}

class PairSource final : public DataSource {
 public:
  PairSource(const PairSourceConfig& config, PairData data, const SourceInputs& inputs)
      : config_(config), data_(std::move(data)), batches_(inputs.batches) {
    if (has(Split::train)) training_.emplace(data_[Split::train].pairs, config.max_length, inputs.batches, inputs.seed);
    // Keys whose effect is in the tokens, which the fingerprint covers, are not part of the identity.
    const std::vector<std::string> without = {"source_column", "target_column", "max_source", "truncate", "header"};
    Fingerprint content;
    for (const Split split : {Split::train, Split::valid}) content.add(fingerprint_of_pairs(data_[split].pairs));
    identity_ = source_identity(settings_of(config), without, content.hex());
  }

  const SourceContent& content() const override { return data_; }
  std::string identity() const override { return identity_; }
  bool has(Split split) const override { return data_[split].pairs.size() > 0; }
  const BatchSource& training() const override {
    check_has(Split::train);
    return *training_;
  }
  std::unique_ptr<BatchSource> evaluation(Split split) const override {
    check_has(split);
    return std::make_unique<PackedPairs>(data_[split].pairs, config_.max_length, batches_, std::nullopt);
  }
  std::vector<EvaluationPair> evaluation_pairs(Split split) const override;

 protected:
  std::vector<std::string> describe_split(Split split) const override {
    const PairSplit& part = data_[split];
    const LengthSummary source = summary_of(part.sources), target = summary_of(part.lengths);
    return {
        fmt::format("{} pairs, {} tokens; sources of {} tokens in the median, {} at most ({} cut to {}); targets of {} "
                    "in the median, {} at most",
                    part.pairs.size(), part.pairs.token_count(), source.median, source.greatest, part.cut,
                    config_.max_source, target.median, target.greatest)};
  }

 private:
  PairSourceConfig config_;
  PairData data_;
  std::string identity_;
  BatchConfig batches_;
  std::optional<PackedPairs> training_;
};

std::vector<EvaluationPair> PairSource::evaluation_pairs(Split split) const {
  check_has(split);
  const PairSplit& part = data_[split];
  if (split == Split::train)
    throw Error("data: the text of training targets is not kept; choose the split valid or test");
  std::vector<EvaluationPair> result;
  for (int64_t pair = 0; pair < part.pairs.size(); ++pair) {
    const std::vector<int32_t> tokens = part.pairs.tokens(pair);
    const auto target = tokens.begin() + prompt_length(part.pairs, pair);
    result.push_back({{tokens.begin(), target}, {target, tokens.end() - 1}, part.targets[static_cast<size_t>(pair)]});
  }
  return result;
}

}  // namespace

ColumnChoice pair_columns(const PairSourceConfig& config, const TableFormat& format, bool targets) {
  const bool json = format.fields == TableFormat::Fields::keys;
  ColumnChoice columns;
  columns.header = config.header.value_or(false);
  columns.label = config.target_column.value_or(json ? "completion" : "2");
  columns.text = {config.source_column.value_or(json ? "prompt" : "1")};
  columns.labels = targets;
  columns.targets = true;
  columns.label_key = "target_column";
  columns.text_key = "source_column";
  return columns;
}

SourceFacts facts(const PairSourceConfig& config) {
  SourceFacts facts;
  facts.longest = config.max_length;
  facts.longest_key = "max_length";
  facts.added_tokens = 2;
  facts.has_documents = true;
  facts.has_pairs = true;
  facts.text = {1, config.max_source, config.truncate};
  facts.files = {{"train", config.train}, {"valid", config.valid}, {"test", config.test}};
  return facts;
}

std::string find_columns(PairSourceConfig& config) {
  static const std::set<std::string> sources = {"source",      "src",   "prompt",   "input",  "question",
                                                "instruction", "query", "document", "article"},
                                     targets = {"target", "tgt",      "completion", "output",
                                                "answer", "response", "summary",    "translation"};
  const TableHead table = head_of_tables(config.train, format_by_name);
  if (table.first_row.empty()) return "";
  const bool keys = table.format->fields == TableFormat::Fields::keys;
  const std::vector<std::string> first = column_names(table.first_row);
  const auto is_named = [&](const std::optional<std::string>& column) {
    return column && !parse_integer(*column) && std::find(first.begin(), first.end(), *column) != first.end();
  };
  const int source = config.source_column ? -1 : column_named(first, sources),
            target = config.target_column ? -1 : column_named(first, targets);
  const bool named = is_named(config.source_column) || is_named(config.target_column);
  const bool given = config.source_column || config.target_column;
  if (!given && first.size() > 2 && (source < 0 || target < 0))
    throw ConfigError(
        fmt::format("data: {}: has {} columns ({}); choose those of the pairs with data.source_column and "
                    "data.target_column",
                    table.file, first.size(), join_first(first)));
  if (!keys && !config.header && !named && (source < 0 || target < 0)) {
    config.header = false;
    return fmt::format("data: {}: read with data.header=false: source is column {}, target column {}", table.file,
                       config.source_column.value_or("1"), config.target_column.value_or("2"));
  }
  if (!keys && config.header == false) return "";
  std::string found;
  const auto add = [&](const char* key, const std::string& value) { found += fmt::format(" data.{}={}", key, value); };
  if (!keys && !config.header) {
    config.header = true;
    add("header", "true");
  }
  const ColumnChoice usual = pair_columns({}, *table.format);
  const auto set = [&](const char* key, std::optional<std::string>& column, int at, const std::string& otherwise) {
    if (at >= 0 && first[static_cast<size_t>(at)] != otherwise) add(key, *(column = first[static_cast<size_t>(at)]));
  };
  set("source_column", config.source_column, source, usual.text.front());
  set("target_column", config.target_column, target, *usual.label);
  return found.empty() ? "" : fmt::format("data: {}: read with{}", table.file, found);
}

std::unique_ptr<DataSource> make_source(const PairSourceConfig& config, const SourceInputs& inputs) {
  check_valid("data", config);
  BadRows bad(config.on_error);
  return std::make_unique<PairSource>(config, load(config, inputs, bad), inputs);
}

DataReport check_source(const PairSourceConfig& checked, const SourceInputs&) {
  PairSourceConfig config = checked;
  config.tokenizer = unsaved(config.tokenizer);
  BadRows bad(OnError::skip);  // the report counts what follows bad rows, too
  const PairData data = load(config, {}, bad);
  DataTable table{"splits",
                  fmt::format("Splits (lengths in {}; sources before they are cut)", unit_of(config.tokenizer)),
                  {"split", "pairs", "source median", "95%", "max", "cut", "target median", "95%", "max"},
                  {}};
  DataReport report;
  for (const Split split : all_splits) {
    const PairSplit& part = data[split];
    if (part.pairs.size() == 0) continue;
    const LengthSummary source = summary_of(part.sources), target = summary_of(part.lengths);
    table.rows.push_back({std::string(to_string(split)), part.pairs.size(), source.median, source.percentile_95,
                          source.greatest, part.cut, target.median, target.percentile_95, target.greatest});
  }
  report.tables = {table};
  report.warnings = data.warnings;
  if (checked.on_error == OnError::stop)
    report.errors = bad.listed();
  else if (bad.count() > 0)
    report.warnings.push_back({"left-out", bad.summary().front()});
  return report;
}

}  // namespace capstan
