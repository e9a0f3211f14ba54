// What the input of a command is: lines of text, a table, or files. One place decides it, for files and for standard
// input, by the name, the format of the run's data and the first lines. tests/cli/inputs/test_inputs.cpp and
// test_tables.cpp, tests/run/test_table_forms.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/formats/table_format.hpp"
#include "run/setup/run_config.hpp"

namespace capstan {

struct TextInputOptions {
  std::string file = "-";                 // -: standard input
  std::string format = "auto";            // lines, tsv, csv, jsonl, fasttext or folders; auto: by name and content
  std::vector<std::string> text_columns;  // in place of those of the run's data; empty: those
  std::vector<std::string> classes;       // of the run: a column of them holds labels
  bool labels = false;                    // read labels, which only tables and folders have
  bool utf8 = false;                      // refuse other text
  std::string command;                    // that reads the texts, for messages: capstan predict RUN
};

struct InputForm {
  enum class Kind { lines, table, files } kind = Kind::lines;
  const TableFormat* format = nullptr;    // of a table
  bool by_first_line = false;             // a table, since its first line is one of the run's data
  const TableFormat* doubtful = nullptr;  // lines of which the first one may be that of a table in this format
};

/// `first_lines` gives up to so many lines, fewer at the end; of standard input, which must be answered line by line,
/// only the first one. It is called at most once, and only where name and options do not say it.
InputForm form_of(const TextInputOptions& options, const SourceConfig& data,
                  const std::function<std::vector<std::string>(size_t count)>& first_lines);

/// Can the data of the run be tables?
bool has_tables(const SourceConfig& data);

}  // namespace capstan
