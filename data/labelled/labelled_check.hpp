// What may be wrong with labelled texts although they can be read. Collected while they are read, for the warnings of
// `capstan train` and the tables of `capstan data check`; tests/data/labelled/test_checks.cpp holds both. The class
// also gives the reader the numbers of files and of sets of labels.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/batches/data_source.hpp"
#include "data/checks/duplicates.hpp"
#include "data/checks/report.hpp"
#include "data/labelled/table_reading.hpp"

namespace capstan {

/// Gives every set of labels a number. Where texts have one label each, the number is the label.
class LabelSets {
 public:
  explicit LabelSets(bool multi_label) : multi_label_(multi_label) {}

  bool multi_label() const { return multi_label_; }
  /// `labels`: ascending.
  int32_t number_of(const LabelSet& labels) {
    if (!multi_label_) return labels.front();
    const auto [found, added] = numbers_.emplace(labels, static_cast<int32_t>(sets_.size()));
    if (added) sets_.push_back(&found->first);
    return found->second;
  }
  LabelSet labels(int32_t number) const {
    return multi_label_ ? *sets_[static_cast<size_t>(number)] : LabelSet{number};
  }

 private:
  bool multi_label_;
  std::map<LabelSet, int32_t> numbers_;
  std::vector<const LabelSet*> sets_;  // the keys of numbers_
};

/// What is known of the files, rows and texts of labelled data, for warnings and reports.
class LabelledCheck {
 public:
  struct File {
    Split split;
    TableReading reading;  // of a text, only the name of the file
    EncodingFacts encoding = {};
  };
  struct Row {
    uint64_t hash;  // copy_hash() of the text
    int64_t line = 0;
    int64_t tokens = 0;     // before truncation
    int32_t label_set = 0;  // the number that sets() has for its labels
    uint32_t file;
  };
  struct OfSplit {
    std::vector<Row> rows;
    int64_t empty = 0, cut = 0;             // texts without tokens; longer than max_length
    int64_t numbers = 0, single_words = 0;  // texts that are nothing else
    std::vector<int64_t> of_class;          // by class: examples that have it; filled in by finish()
    std::vector<std::string> first;         // texts of the first three rows

    LengthSummary lengths() const {
      std::vector<int64_t> tokens;
      for (const Row& row : rows) tokens.push_back(row.tokens);
      return summary_of(std::move(tokens));
    }
  };

  /// `whole`: collect all that `capstan data check` shows; otherwise only what costs little time and memory. `config`
  /// must outlive this.
  LabelledCheck(const LabelledSourceConfig& config, bool whole)
      : config_(config), whole_(whole), sets_(config.multi_label) {}
  bool whole() const { return whole_; }

  LabelSets& sets() { return sets_; }
  const LabelSets& sets() const { return sets_; }
  LabelSet labels(const Row& row) const { return sets_.labels(row.label_set); }

  /// A file of a split, as it was understood; returns its number.
  uint32_t add_file(Split split, TableReading reading);
  /// Looks at the content of a file, and calls passed(end) of bytes that are not needed again.
  void set_content(uint32_t file, std::string_view content, const std::function<void(size_t end)>& passed = {});
  /// Throws Error where, without a header, a table has other columns than the first one, so that others would be read.
  void refuse_other_columns(uint32_t file) const;
  /// Reserves memory for `rows` rows that are about to be added to a split.
  void reserve(Split split, size_t rows) { counts(split).rows.reserve(rows); }
  void add_row(Split split, const std::string& text, const Row& row);
  void add_empty(Split split) { ++counts(split).empty; }

  /// Call it after all rows: counts classes and copies of texts. `classes`: their names, by label.
  void finish(std::vector<std::string> classes);

  const LabelledSourceConfig& config() const { return config_; }
  const std::vector<std::string>& classes() const { return classes_; }
  const std::vector<File>& files() const { return files_; }
  const OfSplit& of(Split split) const { return splits_[static_cast<size_t>(split)]; }
  const Duplicates& duplicates() const { return duplicates_; }
  /// "train.tsv:17".
  std::string place(size_t split, uint64_t row) const;
  /// The names of a row's labels, joined.
  std::string label_names(const Row& row) const;
  /// The first table of columns of train, or null.
  const TableReading* first_table() const;

 private:
  OfSplit& counts(Split split) { return splits_[static_cast<size_t>(split)]; }

  const LabelledSourceConfig& config_;
  bool whole_;
  LabelSets sets_;
  std::vector<std::string> classes_;
  std::vector<File> files_;
  std::array<OfSplit, checked_splits> splits_;
  Duplicates duplicates_;
};

/// What to do if the labels are identifiers or texts, for the end of a message.
constexpr const char* label_column_remedy = "check data.label_column (without it, the label is found)";
/// The warnings about the data. Their names (DataWarning::check) must be those of the table in docs/labelled.md.
std::vector<DataWarning> warnings_of(const LabelledCheck& check);
/// The report of `capstan data check`: tables and warnings.
DataReport report_of(const LabelledCheck& check);

}  // namespace capstan
