// The texts that a command reads: lines, rows of a table with the columns of the run's data, or whole files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/files/table_reader.hpp"
#include "data/files/text_file.hpp"
#include "run/inputs/input_text.hpp"
#include "run/inputs/table_output.hpp"
#include "run/setup/run_config.hpp"

namespace capstan {

struct TextInputOptions {
  std::string file = "-";                 // -: standard input
  std::string format = "auto";            // lines, tsv, csv, jsonl, fasttext or folders; auto: by name and content
  std::vector<std::string> text_columns;  // other ones than those of the run
  std::vector<std::string> classes;       // of the run: a column of them holds labels
  bool labels = false;                    // tables only
  bool utf8 = false;                      // refuse other text
  std::string command;                    // that reads the texts, for messages: capstan predict RUN
};

/// Lines are read as they are needed, tables as a whole; which columns are read is logged. Throws Error for a file that
/// cannot be read, naming the remedy, and ConfigError for labels in lines.
class TextInput {
 public:
  TextInput(const TextInputOptions& options, const SourceConfig& data);

  /// False at the end.
  bool next(InputText& text);
  /// Is there nothing more to read at the moment, as in a pipe that another program writes?
  bool idle() const { return !format_ && in_->idle(); }

  /// Throws ConfigError for texts that are no TSV, CSV or JSONL, to which with_fields() could add nothing, and for a
  /// name by which `output`, the file of its result, would be read as something else.
  void check_table(const std::string& output) const;
  /// The table with these fields after those of each row; throws Error as capstan::with_fields() does.
  std::string with_fields(const std::vector<std::vector<AddedField>>& added) const;
  /// Bytes of a table.
  size_t bytes() const { return content_.size(); }

 private:
  void read_rows(TableFormat format);
  void read_files();
  ColumnChoice choose_columns(TableFormat format) const;

  TextInputOptions options_;
  const SourceConfig& data_;
  std::optional<TableFormat> format_;  // none: lines
  std::optional<TextReader> in_;       // of all but folders
  size_t columns_;                     // texts of a row that are separate
  std::string content_;                // of a table
  bool header_ = false;                // has it one?
  std::vector<InputText> rows_;        // of a table
  size_t at_ = 0;
  int64_t line_ = 0;
  bool tab_said_ = false;
};

}  // namespace capstan
