#include "data/labelled/labelled_source.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "core/config/settings.hpp"
#include "core/machine/in_order.hpp"
#include "core/strings/strings.hpp"
#include "core/strings/utf8.hpp"
#include "data/batches/example_source.hpp"
#include "data/files/file_list.hpp"
#include "data/files/split.hpp"
#include "data/files/text_file.hpp"
#include "data/labelled/class_folders.hpp"
#include "data/labelled/class_names.hpp"
#include "data/labelled/labelled_check.hpp"

namespace capstan {
namespace {

/// A row and its location.
struct Source {
  LabelledText row;
  std::shared_ptr<const std::string> file;
  uint32_t file_number = 0;  // in the check
  int32_t label_set = 0;     // in the check's sets
  std::string place() const { return fmt::format("{}:{}", *file, row.line); }
};

/// The classes that the configuration names; empty when it names none.
std::vector<std::string> named_classes(const LabelledSourceConfig& config) {
  return config.classes_file.empty() ? config.classes : ClassNames::from_file(config.classes_file).names();
}

/// What happens to the rows while they are read.
struct Loading {
  const LabelledSourceConfig& config;
  bool utf8;
  BadRows& bad;
  LabelledCheck& check;
  bool classifies;  // SourceInputs::classifies
  LogLine log = {};
};

/// Every file below `paths` is a text; its label is the name of its folder, one level below the path.
std::vector<Source> read_folders(const std::vector<std::string>& paths, Split split, const Loading& loading) {
  const LabelledSourceConfig& config = loading.config;
  const std::vector<std::string> wanted = named_classes(config);
  std::vector<Source> sources;
  const std::vector<FoundFile> files = list_files(paths);
  if (wanted.empty()) refuse_parts_as_classes(files, paths);
  Progress progress(loading.log, "reading", 0);
  const int64_t bad_before = loading.bad.count();
  std::vector<std::string> loose;
  std::map<std::string, int64_t> folders;  // files in each
  for (const FoundFile& found : files) {
    const size_t slash = found.name.find('/');
    if (slash == std::string::npos) {
      loose.push_back(found.path);
      continue;
    }
    const std::string label = found.name.substr(0, slash);
    ++folders[label];
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), label) == wanted.end()) continue;
    std::string text = read_text_file(found.path, config.max_file_mb);
    progress.add(static_cast<double>(text.size()));
    const uint32_t number = loading.check.add_file(split, found.path, text, nullptr, 1);
    if (loading.utf8 && !loading.bad.guard([&] { check_utf8(text, found.path); })) continue;
    sources.push_back({{label, std::move(text), 1}, std::make_shared<const std::string>(found.path), number});
  }
  if (sources.empty() && !paths.empty() && loading.bad.count() == bad_before)
    refuse_no_texts(paths, wanted, loose, files.size());
  report_folders(folders, wanted, split, loading.log);
  // The original IMDB has lists of addresses and counts of words there.
  if (!loose.empty() && wanted.empty() && loading.log)
    loading.log(fmt::format("data.{}: left out {} file{} beside the folders of the classes: {}", to_string(split),
                            loose.size(), loose.size() == 1 ? "" : "s", join_first(loose)));
  return sources;
}

std::vector<Source> read_tables(const std::vector<std::string>& paths, Split split, const Loading& loading) {
  const LabelledSourceConfig& config = loading.config;
  BadRows& bad = loading.bad;
  std::vector<Source> sources;
  ColumnChoice columns{config.header.value_or(false), config.label_column, config.text_columns};
  if (config.multi_label) columns.label_separator = config.label_separator;
  columns.label_columns = config.label_columns;
  if (split == Split::train) columns.weight = config.weight_column;
  columns.empty_labels = !loading.classifies;
  Progress progress(loading.log, "reading", 0);
  for (const FoundFile& found : list_files(paths)) {
    progress.begin("reading " + found.path);
    const std::string content = read_text_file(found.path, config.max_file_mb);
    const int64_t bad_before = bad.count();
    const TableFormat& format = format_of(found.path, config.format);
    auto rows = read_table(content, found.path, format, columns, bad, loading.utf8);
    const auto file = std::make_shared<const std::string>(found.path);
    const uint32_t number =
        loading.check.add_file(split, found.path, content, &format, rows.empty() ? 0 : rows.front().line);
    if (rows.empty() && bad.count() == bad_before) throw Error(fmt::format("{}: holds no examples", found.path));
    for (LabelledText& row : rows)
      if (row.weight > 0) sources.push_back({std::move(row), file, number});
    progress.add(static_cast<double>(content.size()));
  }
  return sources;
}

std::vector<Source> read_rows(const std::vector<std::string>& paths, Split split, const Loading& loading) {
  return with_key(split, [&] {
    return loading.config.format == format_of_folders ? read_folders(paths, split, loading)
                                                      : read_tables(paths, split, loading);
  });
}

ClassNames class_names(const LabelledSourceConfig& config, const std::vector<Source>& train) {
  if (!config.classes.empty() && !config.classes_file.empty())
    throw ConfigError("data: give either classes or classes_file, not both");
  if (!config.classes.empty()) return ClassNames::from_list(config.classes, "data: classes", config.first_label);
  if (!config.classes_file.empty()) return ClassNames::from_file(config.classes_file, config.first_label);
  if (!config.label_columns.empty()) return ClassNames::from_list(config.label_columns, "data: label_columns");
  std::vector<std::string> labels;
  for (const Source& source : train)
    if (config.multi_label)
      labels.insert(labels.end(), source.row.labels.begin(), source.row.labels.end());
    else
      labels.push_back(source.row.label);
  return ClassNames::gather(labels, join_first(config.train));
}

/// Throws Error for labels that are identifiers or texts, before training with as many classes takes hours.
void refuse_unique_labels(const ClassNames& classes, const std::vector<Source>& train, const Loading& loading) {
  constexpr size_t examples_needed = 20;
  const size_t labels = classes.names().size(), examples = train.size();
  if (loading.config.unique_labels || loading.config.multi_label) return;
  if (examples < examples_needed || 10 * labels < 9 * examples) return;
  throw Error(
      fmt::format("{}: {} classes in {} training examples: the labels are probably identifiers or texts; {}, or "
                  "data.unique_labels=true if they are right",
                  join_first(loading.config.train), labels, examples, label_column_remedy(loading.check)));
}

/// predict could not join such names, nor a table hold them.
void check_separator(const LabelledSourceConfig& config, const ClassNames& classes) {
  if (!config.multi_label) return;
  for (const std::string& name : classes.names())
    if (name.find(config.label_separator) != std::string::npos)
      throw Error(
          fmt::format("data.label_separator: the label '{}' contains '{}': choose a separator that no label has",
                      name.substr(0, 100), config.label_separator));
}

LabelSet labels_of(const Source& source, const ClassNames& classes, bool multi_label) {
  if (!multi_label) return {classes.index_of(source.row.label, source.place())};
  LabelSet labels;
  for (const std::string& name : source.row.labels) labels.push_back(classes.index_of(name, source.place()));
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());  // once by its name, once by its number
  return labels;
}

void set_labels(std::vector<Source>& sources, const ClassNames& classes, const Loading& loading) {
  const auto unknown = [&](Source& source) {
    return !loading.bad.guard([&] {
      try {
        LabelSets& sets = loading.check.sets();
        source.label_set = sets.number_of(labels_of(source, classes, sets.multi_label()));
      } catch (const Error& problem) {
        const LabelledCheck::File& file = loading.check.files()[source.file_number];
        if (source.row.line != file.first_line || !file.sample.begins_with_names() ||
            loading.config.header.value_or(false))
          throw;
        throw Error(fmt::format("{}; the first row names columns: set data.header=true", problem.what()));
      }
    });
  };
  sources.erase(std::remove_if(sources.begin(), sources.end(), unknown), sources.end());
}

/// Throws Error unless there are examples to tell apart.
void check_several_classes(const std::vector<Source>& train, const ClassNames& classes, const LabelSets& sets,
                           const LabelledSourceConfig& config) {
  const Source& first = train.front();
  const bool same = std::all_of(train.begin(), train.end(),
                                [&](const Source& source) { return source.label_set == first.label_set; });
  std::string found;
  if (same && sets.labels(first.label_set).empty())
    found = fmt::format("none of {} examples has a label", train.size());
  else if (same && !sets.multi_label())
    found = fmt::format("all {} examples have the label '{}'", train.size(), first.row.label);
  else if (classes.names().size() < 2)
    found = fmt::format("'{}' is the only label", join(classes.names()));
  else
    return;
  throw Error(fmt::format("{}: {}; a classifier needs at least two classes (is {} right?)", *first.file, found,
                          config.label_columns.empty() ? "label_column" : "label_columns"));
}

/// The examples of class c that are held out, as positions in an order drawn for it: a share, or a fold. Classes begin
/// with different folds, so that what is left over of them does not all go to one.
std::pair<size_t, size_t> held_positions(size_t c, size_t count, const LabelledSourceConfig& config) {
  if (config.folds > 0) {
    const auto folds = static_cast<size_t>(config.folds), fold = (static_cast<size_t>(config.fold) + c) % folds;
    return {count * fold / folds, count * (fold + 1) / folds};
  }
  if (count < 2) return {0, 0};
  const auto share = static_cast<size_t>(std::llround(static_cast<double>(count) * config.valid_fraction));
  return {0, std::clamp<size_t>(share, 1, count - 1)};
}

/// Moves examples of each class, multi-label of all, to the result: those at positions [begin, end) = range(class,
/// count) of an order that is drawn for the class and `purpose` (with {} for the class). Both keep their order.
template <class Range>
std::vector<Source> take_of_classes(std::vector<Source>& sources, int64_t classes, const LabelledSourceConfig& config,
                                    const char* purpose, const Range& range) {
  std::vector<std::vector<size_t>> by_class(static_cast<size_t>(config.multi_label ? 1 : classes));
  for (size_t i = 0; i < sources.size(); ++i)
    by_class[config.multi_label ? 0 : static_cast<size_t>(sources[i].label_set)].push_back(i);
  std::vector<bool> marked(sources.size(), false);
  for (size_t c = 0; c < by_class.size(); ++c) {
    const size_t count = by_class[c].size();
    const std::pair<size_t, size_t> places = range(c, count);
    const RandomKey key = random_key(static_cast<uint64_t>(config.split_seed), fmt::format(fmt::runtime(purpose), c));
    for (size_t i = places.first; i < places.second; ++i) marked[by_class[c][permuted(i, count, key, 0)]] = true;
  }
  return take_marked(sources, marked);
}

/// Keeps a share of every class, and at least one. What a smaller share keeps, a larger one keeps, too.
void thin_out(std::vector<Source>& train, int64_t classes, const LabelledSourceConfig& config) {
  if (config.train_fraction == 1) return;
  train = take_of_classes(train, classes, config, "examples of class {} that are used", [&](size_t, size_t count) {
    const auto share = static_cast<size_t>(std::ceil(static_cast<double>(count) * config.train_fraction));
    return std::make_pair(size_t{0}, std::min(share, count));
  });
}

/// Moves a share or a fold of every class from train to the result.
std::vector<Source> hold_out(std::vector<Source>& train, int64_t classes, const LabelledSourceConfig& config) {
  const size_t all = train.size();
  std::vector<Source> valid = take_of_classes(train, classes, config, "held-out examples of class {}",
                                              [&](size_t c, size_t count) { return held_positions(c, count, config); });
  if (config.folds > 0 && (train.empty() || valid.empty()))
    throw ConfigError(fmt::format("data.folds: {} examples are too few for {} folds; lower it", all, config.folds));
  return valid;
}

struct Encoded {
  std::vector<int32_t> ids;
  int64_t length = 0;  // before any were cut off
  HashBits hash = {};
};

ExampleSet encode(const std::vector<Source>& sources, const Tokenizer& tokenizer, Split split, int64_t classes,
                  const Loading& loading, Progress& progress) {
  const LabelledSourceConfig& config = loading.config;
  const TextRule rule = text_rule(config);
  ExampleSet examples = config.multi_label ? ExampleSet::multi_label(std::max<int64_t>(classes, 1)) : ExampleSet();
  const auto work = [&](const Source* source) {
    const std::string& text = source->row.text;
    const auto columns = config.separator ? source->row.columns() : std::vector<std::string_view>{text};
    Encoded encoded{{}, 0, hash_bits(text)};
    encoded.ids = encode_text(columns, tokenizer, rule, source->place(), &encoded.length);
    return encoded;
  };
  InOrder<const Source*, Encoded> rows(work, [&](const Source* source, auto& outcome) {
    progress.add(1);
    loading.bad.guard([&] {
      const Encoded& found = outcome.get();
      if (found.ids.empty()) loading.check.add_empty(split);
      if (!found.ids.empty()) {
        examples.add(found.ids, loading.check.sets().labels(source->label_set));
        examples.weigh_last(source->row.weight);
        loading.check.add_row(split, source->row.text,
                              {found.hash, source->row.line, found.length, source->file_number, source->label_set,
                               source->row.repeats_label});
      } else if (!config.skip_empty)
        throw Error(fmt::format("{}: the text is empty; set skip_empty: true to leave such rows out", source->place()));
    });
  });
  for (const Source& source : sources) rows.add(&source, source.row.text.size());
  rows.finish();
  return examples;
}

/// Throws Error, unless rows are skipped, for bad ones.
ClassificationData load(const Loading& loading, std::shared_ptr<const Tokenizer> tokenizer) {
  const LabelledSourceConfig& config = loading.config;
  BadRows& bad = loading.bad;
  PerSplit<std::vector<Source>> rows;
  for (const Split split : all_splits) rows[split] = read_rows(part_of(config, split), split, loading);
  std::vector<Source>& train = rows.train;
  if (config.train.empty() && !tokenizer) throw ConfigError("data: train names no file");
  const auto check_train = [&](bool any_left) {
    bad.check(any_left || config.train.empty());
    if (!any_left && !config.train.empty())
      throw Error(fmt::format("{}: no row has usable text{}{}", join_first(config.train), bad.count() > 0 ? "\n" : "",
                              join(bad.listed(), "\n")));
  };
  const bool named = !config.classes.empty() || !config.classes_file.empty();
  if (!named || train.empty()) check_train(!train.empty());  // else unknown labels are reported first
  const ClassNames classes = class_names(config, train);
  check_separator(config, classes);
  if (loading.classifies && !named) refuse_unique_labels(classes, train, loading);
  for (const Split split : all_splits) set_labels(rows[split], classes, loading);
  check_train(!train.empty());
  if (loading.classifies && !train.empty()) check_several_classes(train, classes, loading.check.sets(), config);
  const auto class_count = static_cast<int64_t>(classes.names().size());
  if (config.folds > 0 || (config.valid.empty() && config.valid_fraction > 0))
    rows.valid = hold_out(train, class_count, config);
  thin_out(train, class_count, config);

  ClassificationData data;
  data.classes = classes.names();
  size_t all = 0;
  for (const Split split : all_splits) all += rows[split].size();
  Progress progress(loading.log, "", static_cast<double>(all), in_texts);
  progress.begin("tokenising");
  if (!tokenizer) {
    std::vector<std::string_view> texts;
    for (const Source& source : train) texts.push_back(source.row.text);
    tokenizer = make_tokenizer(config.tokenizer, texts);
  }
  data.tokenizer = std::move(tokenizer);
  for (const Split split : all_splits)
    data[split] = encode(rows[split], *data.tokenizer, split, class_count, loading, progress);
  check_train(data.train.size() > 0);
  data.left_out = bad.summary();
  int64_t empty = 0;
  for (const Split split : all_splits) empty += loading.check.of(split).empty;
  if (empty > 0 && config.skip_empty)
    data.left_out.push_back(fmt::format("data: left out {} texts without tokens (skip_empty)", empty));
  loading.check.finish(data.classes);
  return data;
}

BadRows bad_rows(const LabelledSourceConfig& config, OnError rule) {
  return BadRows(rule, config.format == format_of_folders ? "file" : "row");
}

}  // namespace

ClassificationData load_labelled(const LabelledSourceConfig& config, std::shared_ptr<const Tokenizer> tokenizer,
                                 bool classifies, const LogLine& log) {
  BadRows bad = bad_rows(config, config.on_error);
  LabelledCheck check(config, false);
  const bool utf8 = tokenizer ? tokenizer->needs_utf8() : needs_utf8(config.tokenizer);
  ClassificationData data = load({config, utf8, bad, check, classifies, log}, std::move(tokenizer));
  data.warnings = warnings_of(check);
  return data;
}

DataReport check_source(const LabelledSourceConfig& checked, const SourceInputs& inputs) {
  LabelledSourceConfig config = checked;
  config.tokenizer = unsaved(config.tokenizer);
  BadRows bad = bad_rows(config, OnError::skip);  // so that what follows is counted, too
  LabelledCheck check(config, true);
  load({config, needs_utf8(config.tokenizer), bad, check, inputs.classifies, inputs.log}, nullptr);
  DataReport report = report_of(check);
  if (config.on_error == OnError::stop) {
    report.errors = bad.listed();
  } else if (bad.count() > 0) {
    report.warnings.push_back({"left-out", bad.summary().front()});
  }
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
  // Not in the identity: what the fingerprint covers (labels and weights).
  const std::vector<std::string> without = {"classes",         "classes_file",  "first_label",   "multi_label",
                                            "label_separator", "label_columns", "unique_labels", "weight_column"};
  LabelledSourceConfig known = config, named = config;
  named.header = config.header.value_or(false);
  if (!inputs.classes.empty()) {
    known.classes = inputs.classes;
    known.classes_file.clear();
  }
  return std::make_unique<ExampleSource>(load_labelled(known, inputs.tokenizer, inputs.classifies, inputs.log), inputs,
                                         settings_of(named), without);
}

}  // namespace capstan
