// From files to examples: rows are read, labels become classes, a share or a fold of each class is held out, and all
// texts are tokenised on all threads, in order. The draws depend on the sentences that name them, so
// neither these nor the order of the rows may change.
#include "data/labelled/labelled_source.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "core/config/settings.hpp"
#include "core/machine/in_order.hpp"
#include "core/strings/strings.hpp"
#include "data/batches/example_source.hpp"
#include "data/checks/copies.hpp"
#include "data/labelled/class_folders.hpp"
#include "data/labelled/class_names.hpp"
#include "data/labelled/labelled_check.hpp"
#include "data/labelled/labelled_rows.hpp"

namespace capstan {
namespace {

ClassNames class_names(const LabelledSourceConfig& config, const std::vector<LabelledRow>& train,
                       const RowTexts& texts) {
  if (!config.classes.empty()) return ClassNames::from_list(config.classes, "data: classes");
  if (!config.label_columns.empty()) return ClassNames::from_list(config.label_columns, "data: label_columns");
  std::vector<bool> used(texts.labels().size());  // by training rows: other splits may have further labels
  for (const LabelledRow& row : train) used[static_cast<size_t>(row.label_names)] = true;
  std::vector<std::string> labels;
  for (size_t i = 0; i < used.size(); ++i)
    if (used[i]) labels.insert(labels.end(), texts.labels()[i].begin(), texts.labels()[i].end());
  return ClassNames::gather(labels, join_first(config.train));
}

/// Throws Error for labels that are identifiers or texts, before training with as many classes takes hours.
void refuse_unique_labels(const ClassNames& classes, const std::vector<LabelledRow>& train, const Loading& loading) {
  constexpr size_t examples_needed = 20;
  const size_t labels = classes.names().size(), examples = train.size();
  if (loading.config.multi_label) return;
  if (examples < examples_needed || 10 * labels < 9 * examples) return;
  throw Error(
      fmt::format("{}: {} classes in {} training examples: the labels are probably identifiers or texts; {}, or "
                  "name them in data.classes if they are right",
                  join_first(loading.config.train), labels, examples, label_column_remedy));
}

/// Throws Error for a class whose name contains the separator: `capstan predict` could not join it with others.
void check_separator(const LabelledSourceConfig& config, const ClassNames& classes) {
  if (!config.multi_label) return;
  for (const std::string& name : classes.names())
    if (name.find(config.label_separator) != std::string::npos)
      throw Error(
          fmt::format("data.label_separator: the label '{}' contains '{}': choose a separator that no label has",
                      name.substr(0, 100), config.label_separator));
}

LabelSet labels_of(const std::vector<std::string>& names, const ClassNames& classes, const std::string& place) {
  LabelSet labels;
  for (const std::string& name : names) labels.push_back(classes.index_of(name, place));
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());  // a text may give a class by name and number
  return labels;
}

/// The label of a test row, which is added to `unseen` where training has no such class.
int32_t test_label(const std::string& name, const ClassNames& classes, std::vector<std::string>& unseen) {
  if (const auto known = classes.find(name)) return *known;
  const auto place = std::find(unseen.begin(), unseen.end(), name) - unseen.begin();
  if (place == static_cast<std::ptrdiff_t>(unseen.size())) unseen.push_back(name);
  return static_cast<int32_t>(classes.names().size()) + static_cast<int32_t>(place);
}

/// Sets label_set of the rows, and removes rows with unknown labels, which go to loading.bad; with `unseen`, rows of
/// one unknown class stay.
void set_labels(std::vector<LabelledRow>& rows, const ClassNames& classes, const Loading& loading,
                const RowTexts& texts, std::vector<std::string>* unseen) {
  constexpr int32_t not_known = -1;
  std::vector<int32_t> sets(texts.labels().size(), not_known);  // unknown labels stay so, and are reported for each row
  const auto unknown = [&](LabelledRow& row) {
    return !loading.bad.guard([&] {
      int32_t& set = sets[static_cast<size_t>(row.label_names)];
      if (set == not_known) {
        const std::vector<std::string>& names = texts.labels(row);
        const LabelSet labels = unseen != nullptr && names.size() == 1
                                    ? LabelSet{test_label(names.front(), classes, *unseen)}
                                    : labels_of(names, classes, place_of(row, loading.check));
        set = loading.check.sets().number_of(labels);
      }
      row.label_set = set;
    });
  };
  rows.erase(std::remove_if(rows.begin(), rows.end(), unknown), rows.end());
}

/// Throws Error unless there are two classes, and training examples of different ones.
void check_several_classes(const std::vector<LabelledRow>& train, const ClassNames& classes, const RowTexts& texts,
                           const LabelledCheck& check, const LabelledSourceConfig& config) {
  const LabelledRow& first = train.front();
  const LabelSet labels = check.sets().labels(first.label_set);
  const bool same =
      std::all_of(train.begin(), train.end(), [&](const LabelledRow& row) { return row.label_set == first.label_set; });
  std::string problem;
  if (same && labels.empty())
    problem = fmt::format("none of {} examples has a label", train.size());
  else if (same && !check.sets().multi_label())
    problem = fmt::format("all {} examples have the label '{}'", train.size(), join(texts.labels(first)));
  else if (classes.names().size() < 2)
    problem = fmt::format("'{}' is the only label", join(classes.names()));
  else
    return;
  throw Error(fmt::format("{}: {}; a classifier needs at least two classes (is {} right?)",
                          check.files()[first.file].reading.file, problem,
                          config.label_columns.empty() ? "label_column" : "label_columns"));
}

/// Positions [first, second) of the examples of class c that are held out, in an order that is drawn for it: a share of
/// `count`, or a fold. Folds of classes are shifted against each other, so that what is left over of all classes does
/// not go to the same fold.
std::pair<size_t, size_t> held_positions(size_t c, size_t count, const LabelledSourceConfig& config) {
  if (config.folds > 0) {
    const auto folds = static_cast<size_t>(config.folds), fold = (static_cast<size_t>(config.fold) + c) % folds;
    return {count * fold / folds, count * (fold + 1) / folds};
  }
  if (count < 2) return {0, 0};
  const auto share = static_cast<size_t>(std::llround(static_cast<double>(count) * config.valid_fraction));
  return {0, std::clamp<size_t>(share, 1, count - 1)};
}

/// Moves some examples of each class, or of all together if a text has any number of labels, to the result: those at
/// positions [begin, end) = range(class, count) of an order that is drawn for the class and `purpose`, a sentence with
/// {} for the class. Both keep their order. `copies` are not drawn: they go where their first ones go.
template <class Range>
std::vector<LabelledRow> take_of_classes(std::vector<LabelledRow>& sources, int64_t classes,
                                         const LabelledSourceConfig& config, const char* purpose, const Range& range,
                                         const std::vector<Copy>& copies = {}) {
  std::vector<std::vector<size_t>> by_class(static_cast<size_t>(config.multi_label ? 1 : classes));
  for (const size_t i : places_but(copies, sources.size()))
    by_class[config.multi_label ? 0 : static_cast<size_t>(sources[i].label_set)].push_back(i);
  std::vector<bool> marked(sources.size(), false);
  for (size_t c = 0; c < by_class.size(); ++c) {
    const size_t count = by_class[c].size();
    const std::pair<size_t, size_t> places = range(c, count);
    const RandomKey key = random_key(0, fmt::format(fmt::runtime(purpose), c));
    for (size_t i = places.first; i < places.second; ++i) marked[by_class[c][permuted(i, count, key, 0)]] = true;
  }
  mark_copies(copies, marked);
  return take_marked(sources, marked);
}

/// Keeps a share (train_fraction) of every class, and at least one example. A larger share keeps all examples of a
/// smaller one.
void thin_out(std::vector<LabelledRow>& train, int64_t classes, const LabelledSourceConfig& config) {
  if (config.train_fraction == 1) return;
  train = take_of_classes(train, classes, config, "examples of class {} that are used", [&](size_t, size_t count) {
    const auto share = static_cast<size_t>(std::ceil(static_cast<double>(count) * config.train_fraction));
    return std::make_pair(size_t{0}, std::min(share, count));
  });
}

/// Moves a share or a fold of every class from train to the result.
std::vector<LabelledRow> hold_out(std::vector<LabelledRow>& train, int64_t classes,
                                  const LabelledSourceConfig& config) {
  const size_t examples = train.size();
  std::vector<uint64_t> hashes;
  for (const LabelledRow& row : train) hashes.push_back(row.hash);
  std::vector<LabelledRow> valid = take_of_classes(
      train, classes, config, "held-out examples of class {}",
      [&](size_t c, size_t count) { return held_positions(c, count, config); }, find_copies(hashes));
  if (config.folds > 0 && (train.empty() || valid.empty()))
    throw ConfigError(
        fmt::format("data.folds: {} examples are too few for {} folds; lower it", examples, config.folds));
  if (!config.group_column.empty() && valid.empty())
    throw ConfigError("data.group_column: there are too few groups to hold one out; set data.valid or another column");
  return valid;
}

struct Encoded {
  std::string text;
  std::vector<int32_t> ids;
  int64_t length = 0;  // in tokens, before any were cut off
};

/// Tokenises the rows of a split, on all threads; examples and errors are in the order of the rows.
ExampleSet encode(const std::vector<LabelledRow>& split_rows, const RowTexts& texts, const Tokenizer& tokenizer,
                  Split split, int64_t classes, const Loading& loading, Progress& progress) {
  const LabelledSourceConfig& config = loading.config;
  const TextRule rule = text_rule(config);
  ExampleSet examples = config.multi_label ? ExampleSet::multi_label(std::max<int64_t>(classes, 1), loading.scratch)
                                           : ExampleSet(loading.scratch);
  examples.reserve(split_rows.size());
  loading.check.reserve(split, split_rows.size());
  const auto work = [&](const LabelledRow* row) {
    LabelledText text = texts.read(*row);
    const auto columns = config.separator ? text.columns() : std::vector<std::string_view>{text.text};
    Encoded encoded;
    encoded.ids = encode_text(columns, tokenizer, rule, place_of(*row, loading.check), &encoded.length);
    encoded.text = std::move(text.text);
    return encoded;
  };
  InOrder<const LabelledRow*, Encoded> rows(work, [&](const LabelledRow* row, auto& outcome) {
    progress.add(1);
    loading.bad.guard([&] {
      const Encoded& text = outcome.get();
      if (text.ids.empty()) loading.check.add_empty(split);
      if (!text.ids.empty()) {
        examples.add(text.ids, loading.check.sets().labels(row->label_set));
        examples.weigh_last(row->weight);
        const bool grouped = !config.group_column.empty() && split == Split::train;
        if (grouped) examples.group_last(row->hash);
        const uint64_t hash = grouped ? copy_hash(text.text) : row->hash;
        loading.check.add_row(split, text.text, {hash, row->line, text.length, row->label_set, row->file});
      } else {
        throw Error(fmt::format("{}: the text is empty", place_of(*row, loading.check)));
      }
    });
  });
  for (const LabelledRow& row : split_rows) rows.add(&row, row.size);
  rows.finish();
  return examples;
}

std::shared_ptr<const Tokenizer> made_tokenizer(const TokenizerConfig& config, const std::vector<LabelledRow>& train,
                                                const RowTexts& texts) {
  std::vector<std::string> read;
  if (learns_from_texts(config))
    for (const LabelledRow& row : train) read.push_back(texts.read(row).text);
  return make_tokenizer(config, std::vector<std::string_view>(read.begin(), read.end()));
}

/// Throws Error where most test texts have labels that are no classes: these are probably in another column.
void refuse_other_labels(const std::vector<LabelledRow>& test, const ClassNames& classes, const Loading& loading,
                         const RowTexts& texts) {
  const auto is_unseen = [&](const LabelledRow& row) { return !classes.find(join(texts.labels(row))); };
  const auto unseen = std::count_if(test.begin(), test.end(), is_unseen);
  if (2 * unseen <= static_cast<std::ptrdiff_t>(test.size())) return;
  const auto first = std::find_if(test.begin(), test.end(), is_unseen);
  with_key(Split::test, [&] { return classes.index_of(join(texts.labels(*first)), place_of(*first, loading.check)); });
}

/// How many test texts have a class that training has not.
std::string unseen_line(const ClassificationData& data) {
  const size_t known = data.classes.size();
  const std::vector<int64_t> counts = data.test.class_counts(static_cast<int64_t>(known + data.unseen.size()));
  std::vector<std::string> named;
  int64_t count = 0;
  for (size_t i = 0; i < data.unseen.size(); ++i) {
    named.push_back(fmt::format("'{}' ({})", data.unseen[i].substr(0, 100), counts[known + i]));
    count += counts[known + i];
  }
  return fmt::format(
      "data.test: {} of {} texts ({:.2f} %) have classes that the training data do not have: {}; they "
      "count as wrong; data.on_error=skip leaves them out",
      count, data.test.size(), 100 * static_cast<double>(count) / static_cast<double>(data.test.size()),
      join_first(named));
}

/// The work of load_labelled() and check_source(). Throws Error for bad rows unless these are skipped.
ClassificationData load(const Loading& loading, std::shared_ptr<const Tokenizer> tokenizer) {
  const LabelledSourceConfig& config = loading.config;
  BadRows& bad = loading.bad;
  PerSplit<std::vector<LabelledRow>> rows;
  RowTexts texts(text_rule(config).columns, loading.scratch);
  const auto read = config.format == format_of_folders ? read_folders : read_tables;
  for (const Split split : all_splits)
    rows[split] = with_key(split, [&] { return read(part_of(config, split), split, loading, texts); });
  std::vector<LabelledRow>& train = rows.train;
  if (config.train.empty() && !tokenizer) throw ConfigError("data: train names no file");
  const auto check_train = [&](bool any_left) {
    bad.check(any_left || config.train.empty());
    if (!any_left && !config.train.empty())
      throw Error(fmt::format("{}: no row has usable text{}{}", join_first(config.train), bad.count() > 0 ? "\n" : "",
                              join(bad.listed(), "\n")));
  };
  const bool named = !config.classes.empty();
  if (!named || train.empty())
    check_train(!train.empty());  // otherwise bad rows are reported together with unknown labels
  const ClassNames classes = class_names(config, train, texts);
  check_separator(config, classes);
  if (loading.classifies && !named) refuse_unique_labels(classes, train, loading);
  ClassificationData data;
  const bool counted = loading.classifies && !config.multi_label && config.on_error == OnError::stop;
  for (const Split split : all_splits)
    set_labels(rows[split], classes, loading, texts, split == Split::test && counted ? &data.unseen : nullptr);
  if (!data.unseen.empty()) refuse_other_labels(rows.test, classes, loading, texts);
  check_train(!train.empty());
  if (loading.classifies && !train.empty()) check_several_classes(train, classes, texts, loading.check, config);
  const auto class_count = static_cast<int64_t>(classes.names().size());
  if (config.folds > 0 || (config.valid.empty() && config.valid_fraction > 0))
    rows.valid = hold_out(train, class_count, config);
  thin_out(train, class_count, config);

  data.classes = classes.names();
  size_t row_count = 0;
  for (const Split split : all_splits) row_count += rows[split].size();
  Progress progress(loading.log, "", static_cast<double>(row_count), in_texts);
  progress.begin("tokenising");
  if (!tokenizer) tokenizer = made_tokenizer(config.tokenizer, train, texts);
  data.tokenizer = std::move(tokenizer);
  for (const Split split : all_splits) {
    data[split] = encode(rows[split], texts, *data.tokenizer, split, class_count, loading, progress);
    rows[split] = std::vector<LabelledRow>();  // {} would keep the memory
  }
  check_train(data.train.size() > 0);
  data.left_out = bad.summary();
  for (const auto& [label, count] : bad.lost())
    if (!classes.find(label))
      data.left_out.push_back(
          fmt::format("data: there is no class '{}': all of its {} rows were left out (on_error: skip)",
                      label.substr(0, 100), count));
  std::vector<std::string> all = data.classes;
  all.insert(all.end(), data.unseen.begin(), data.unseen.end());
  loading.check.finish(all);
  if (!data.unseen.empty()) data.left_out.push_back(unseen_line(data));
  return data;
}

BadRows bad_rows(const LabelledSourceConfig& config, OnError rule) {
  return BadRows(rule, config.format == format_of_folders ? "file" : "row");
}

/// load() that reports bad rows before an error about the data as a whole, such as a missing class: the bad rows may be
/// the cause.
ClassificationData load_after_bad_rows(const Loading& loading, std::shared_ptr<const Tokenizer> tokenizer) {
  try {
    return load(loading, std::move(tokenizer));
  } catch (const ConfigError&) {
    throw;
  } catch (const BadRowsError&) {
    throw;
  } catch (const Error& error) {
    const std::vector<std::string> rows = loading.bad.listed();
    if (rows.empty()) throw;
    throw Error(join(rows, "\n") + "\n" + error.what());
  }
}

}  // namespace

ClassificationData load_labelled(const LabelledSourceConfig& config, std::shared_ptr<const Tokenizer> tokenizer,
                                 bool classifies, const LogLine& log, const std::string& scratch) {
  BadRows bad = bad_rows(config, config.on_error);
  LabelledCheck check(config, false);
  const bool utf8 = tokenizer ? tokenizer->needs_utf8() : needs_utf8(config.tokenizer);
  ClassificationData data =
      load_after_bad_rows({config, utf8, bad, check, classifies, log, scratch}, std::move(tokenizer));
  data.warnings = warnings_of(check);
  return data;
}

DataReport check_source(const LabelledSourceConfig& checked, const SourceInputs& inputs) {
  LabelledSourceConfig config = checked;
  config.tokenizer = unsaved(config.tokenizer);
  BadRows bad = bad_rows(config, OnError::skip);  // the report counts what follows bad rows, too
  LabelledCheck check(config, true);
  const ClassificationData data =
      load_after_bad_rows({config, needs_utf8(config.tokenizer), bad, check, inputs.classifies, inputs.log}, nullptr);
  DataReport report = report_of(check);
  const bool stops = config.on_error == OnError::stop;
  if (stops) report.errors = bad.listed();
  for (const std::string& line : stops ? bad.repeated_headers() : data.left_out)
    report.warnings.push_back({"left-out", line});
  return report;
}

TextRule text_rule(const LabelledSourceConfig& config) {
  return {config.separator ? config.text_columns.size() : 1, config.max_length, config.truncate};
}

SourceFacts facts(const LabelledSourceConfig& config) {
  SourceFacts facts;
  facts.has_labels = true;
  if (config.multi_label) facts.label_separator = config.label_separator;
  facts.longest = config.max_length;
  facts.longest_key = "max_length";
  facts.added_tokens = config.separator ? 1 : 0;
  facts.text = text_rule(config);
  facts.files = {{"train", config.train}, {"valid", config.valid}, {"test", config.test}};
  return facts;
}

std::unique_ptr<DataSource> make_source(const LabelledSourceConfig& config, const SourceInputs& inputs) {
  // Keys whose effect is in the labels and weights, which the fingerprint covers, are not part of the identity.
  const std::vector<std::string> without = {"classes",       "multi_label",   "label_separator",
                                            "label_columns", "weight_column", "group_column"};
  LabelledSourceConfig known = config, named = config;
  named.header = config.header.value_or(false);
  if (!inputs.classes.empty()) known.classes = inputs.classes;
  return std::make_unique<ExampleSource>(
      load_labelled(known, inputs.tokenizer, inputs.classifies, inputs.log, inputs.scratch), inputs, settings_of(named),
      without);
}

}  // namespace capstan
