// The texts that a command reads: lines, or rows of a table with the columns of the run's data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/files/text_file.hpp"
#include "run/predictions/input_text.hpp"
#include "run/setup/run_config.hpp"

namespace capstan {

struct TextInputOptions {
  std::string file = "-";  // -: standard input
  std::string format =
      "auto";           // lines, tsv, csv, jsonl or fasttext; auto: csv and jsonl by the name of the file, else lines
  bool labels = false;  // tables only
  bool utf8 = false;    // refuse other text
  std::string command;  // that reads the texts, for messages: capstan predict RUN
};

/// Lines are read as they are needed, tables as a whole. Throws Error for a file that cannot be read, naming the remedy, and
/// ConfigError for labels in lines.
class TextInput {
 public:
  TextInput(const TextInputOptions& options, const SourceConfig& data);

  /// False at the end.
  bool next(InputText& text);
  /// Is there nothing more to read at the moment, as in a pipe that another program writes?
  bool idle() const { return !format_ && in_.idle(); }

 private:
  void read_rows(TableFormat format);

  TextInputOptions options_;
  const SourceConfig& data_;
  std::optional<TableFormat> format_;  // none: lines
  TextReader in_;
  size_t columns_;               // texts of a row that are separate
  std::vector<InputText> rows_;  // of a table
  size_t at_ = 0;
  int64_t line_ = 0;
};

}  // namespace capstan
