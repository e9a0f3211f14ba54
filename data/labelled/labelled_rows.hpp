// Reads the rows of labelled data, for labelled_source. Until they are tokenised, their texts are in a ByteStore, which
// moves to a file when they are many; of a row only what is needed to find its text stays in memory.
// tests/data/labelled/test_labelled_source.cpp, test_tables_people_have.cpp and test_bad_rows.cpp hold what is read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/io/byte_store.hpp"
#include "core/io/progress.hpp"
#include "data/files/bad_rows.hpp"
#include "data/files/split.hpp"
#include "data/formats/table_format.hpp"
#include "data/labelled/labelled_check.hpp"

namespace capstan {

/// The rules by which rows are read, and the collectors of what is found in them. All references must outlive it.
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
  int64_t text = 0, line = 0;  // place in RowTexts of column boundaries and text; line in the file
  uint32_t size = 0;           // bytes of the text
  uint32_t file;               // its number in the check
  int32_t label_names = 0;     // the number in RowTexts of the labels as they were in the data
  int32_t label_set = 0;       // once classes are known: the number in LabelledCheck::sets()
  double weight = 1;           // how much it counts in training
  uint64_t hash = 0;           // copy_hash() of its text, or of the first text that a group connects it with
};

/// The texts of rows, and the different labels that they have.
class RowTexts {
 public:
  /// Every text has `columns` columns, which LabelledText::columns() of read() tells apart; 1: the columns are one
  /// text. `folder`: where the ByteStore keeps its file.
  RowTexts(size_t columns, std::string folder) : columns_(columns), texts_(std::move(folder)) {}

  /// Throws Error for a text of more than 4 GB. `file`: its number in the check.
  LabelledRow add(LabelledText&& row, uint32_t file);
  /// The text and the boundaries of its columns. Safe to call from several threads while none adds.
  LabelledText read(const LabelledRow& row) const;
  /// The labels of a row as they were in the data: one, or any number.
  const std::vector<std::string>& labels(const LabelledRow& row) const {
    return labels_[static_cast<size_t>(row.label_names)];
  }
  const std::vector<std::vector<std::string>>& labels() const { return labels_; }

 private:
  size_t columns_;
  ByteStore texts_;
  std::vector<std::vector<std::string>> labels_;
  std::map<std::vector<std::string>, int32_t> numbers_;  // of labels_
};

/// "train.tsv:17"
std::string place_of(const LabelledRow& row, const LabelledCheck& check);

/// The rows of all tables, in the order of list_files(). Rows that cannot be used go to loading.bad. Throws Error for
/// files that cannot be read or hold no rows.
std::vector<LabelledRow> read_tables(const std::vector<std::string>& paths, Split split, const Loading& loading,
                                     RowTexts& texts);

}  // namespace capstan
