// Which columns of a table hold text and labels: found by names and values where the configuration does not say.
#pragma once

#include <string>
#include <vector>

#include "data/labelled/class_names.hpp"
#include "data/labelled/labelled_config.hpp"

namespace capstan {

/// Sets header, label_column and text_columns where they are unset, and multi_label where labels are lists or columns
/// of which not exactly one is 1, by the first rows of the first training table. Returns what was found, in one line;
/// empty when nothing was, also of files that cannot be read. Throws ConfigError where several columns could have the
/// labels that a model needs (`classifies`), or the texts.
std::string find_columns(LabelledSourceConfig& config, bool classifies = true);

/// Columns of another table than those of the training.
struct FoundColumns {
  ColumnChoice choice;
  std::string said;  // in one line, which columns are read and which left out; empty where there is one column
};

/// The columns of TSV or CSV, by the names that `config` has or else by their values: a column of `classes` holds
/// labels and is no text. A header without these names counts as none where the column of the labels shows it, is one
/// if it looks like one, and otherwise an error. `texts`: the columns of the texts, if they are other ones. `labels`:
/// they are needed. Throws Error, too, where the texts that are named are labels.
FoundColumns columns_of_table(LabelledSourceConfig config, const std::vector<std::string>& texts,
                              std::string_view content, const std::string& file, const TableFormat& format,
                              const ClassNames* classes, bool labels);

}  // namespace capstan
