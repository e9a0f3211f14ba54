// The rows of labelled data as they are read: their texts are many, so that they may be in a file meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/io/byte_store.hpp"
#include "core/io/progress.hpp"
#include "data/files/bad_rows.hpp"
#include "data/files/split.hpp"
#include "data/formats/table_format.hpp"
#include "data/labelled/labelled_check.hpp"

namespace capstan {

/// The classes that the configuration names; empty when it names none.
std::vector<std::string> named_classes(const LabelledSourceConfig& config);

/// What happens to the rows while they are read.
struct Loading {
  const LabelledSourceConfig& config;
  bool utf8;
  BadRows& bad;
  LabelledCheck& check;
  bool classifies;  // SourceInputs::classifies
  LogLine log = {};
  std::string scratch = {};  // SourceInputs::scratch
};

/// A row without its text.
struct LabelledRow {
  int64_t text = 0, line = 0;             // where its text is in RowTexts; its line in the file
  uint32_t size = 0;                      // of the text
  uint32_t file : 31, repeats_label : 1;  // the file's number in the check
  int32_t label_names = 0;                // the number that RowTexts has for them, as they were in the data
  int32_t label_set = 0;                  // when classes are known: the number in the check's sets
  double weight = 1;                      // how much it counts in training
};

/// The texts of rows, and the different labels that they have.
class RowTexts {
 public:
  /// Every text has so many columns, which columns() tells apart; 1: it has one.
  RowTexts(size_t columns, std::string folder) : columns_(columns), texts_(std::move(folder)) {}

  LabelledRow add(LabelledText&& row, uint32_t file);
  /// The text and the boundaries of its columns.
  LabelledText read(const LabelledRow& row) const;
  /// As they were in the data: one, or any number.
  const std::vector<std::string>& labels(const LabelledRow& row) const {
    return labels_[static_cast<size_t>(row.label_names)];
  }
  const std::vector<std::vector<std::string>>& labels() const { return labels_; }

 private:
  size_t columns_;
  ByteStore texts_;
  std::vector<std::vector<std::string>> labels_;
  std::unordered_map<std::string, int32_t> numbers_;  // of labels_
};

/// "train.tsv:17"
std::string place_of(const LabelledRow& row, const LabelledCheck& check);

/// The rows of all files.
std::vector<LabelledRow> read_rows(const std::vector<std::string>& paths, Split split, const Loading& loading,
                                   RowTexts& texts);

}  // namespace capstan
