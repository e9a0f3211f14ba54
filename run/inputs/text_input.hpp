// The texts that a command reads: lines, rows of a table with the columns of the run's data, or whole files. Commands
// open it by apps/command_line/text_options. tests/cli/inputs/test_inputs.cpp and test_tables.cpp hold what a file is
// taken for.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/files/text_file.hpp"
#include "run/inputs/input_form.hpp"
#include "run/inputs/input_text.hpp"

namespace capstan {

/// Lines are read as they are needed, tables as a whole; which columns are read is logged. Standard input is a table if
/// its first line is one of the run's data: with the names or keys of its texts, or with a label as fastText writes it.
/// Throws Error for a file that cannot be read, naming the remedy, and ConfigError for labels in lines.
class TextInput {
 public:
  TextInput(const TextInputOptions& options, const SourceConfig& data);

  /// False at the end.
  bool next(InputText& text);
  /// Is there nothing more to read at the moment, as in a pipe that another program writes?
  bool idle() const { return !rows_given_ && waiting_.empty() && in_->idle(); }

  /// Throws ConfigError for texts that are no TSV, CSV or JSONL, to which with_fields() could add nothing, and for a
  /// name by which `output`, the file of its result, would be read as something else.
  void check_table(const std::string& output);
  /// The table with these columns after its own, whose fields of each row are `added`. Throws Error where it has such a
  /// column.
  std::string with_fields(const std::vector<AddedField>& columns,
                          const std::vector<std::vector<AddedField>>& added) const;
  /// Bytes of a table.
  size_t bytes() const { return content_.size(); }

 private:
  /// Decides what the input is, and reads tables and files; standard input when its first text is asked for.
  void decide();
  void read_rows();
  void read_files();
  ColumnChoice choose_columns() const;

  TextInputOptions options_;
  const SourceConfig& data_;
  const TableFormat* format_ = nullptr;  // null: lines or files
  bool rows_given_ = false;              // the texts are rows_, of a table or of files
  std::optional<TextReader> in_;         // of all but files
  size_t columns_;                       // texts of a row that are separate
  std::string content_;                  // of a table
  bool header_ = false;                  // does the table have one?
  Dialect dialect_ = {};                 // of its fields
  std::vector<InputText> rows_;          // of a table or of files
  size_t at_ = 0;                        // in rows_
  bool decided_ = false;
  std::deque<std::string> waiting_;  // lines that were read to decide it
  int64_t line_ = 0;
  bool tab_said_ = false;  // was it logged that a line looks like a row of a table?
};

/// Calls `take` with the texts in batches of `size`, or smaller ones where the input is a pipe that has no more at the
/// moment. Where a text causes an error, the texts in front of it are taken first: one that cannot be used must not
/// keep them from being computed (tests/cli/runs/test_commands.cpp, "predict answers for ...").
void for_each_batch(TextInput& texts, size_t size, const std::function<void(const std::vector<InputText>&)>& take);

}  // namespace capstan
