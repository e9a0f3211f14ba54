// Adds the options of commands that read texts, and opens the texts. tests/cli/inputs/test_inputs.cpp.
#include "apps/command_line/text_options.hpp"

#include "apps/command_line/options.hpp"

namespace capstan {

/// The values of --input: those of data.format, with "lines" inserted after their first one, "auto".
static std::vector<std::string> input_formats() {
  std::vector<std::string> names = data_format_names();
  names.insert(names.begin() + 1, "lines");
  return names;
}

void add_text_options(CLI::App& command, TextOptions& options) {
  TextInputOptions& input = options.input;
  add_run(command, options.run);
  command.add_option("FILE", input.file, "the texts, or a folder of such files; - is standard input")->type_name("");
  command
      .add_option(
          "--input", input.format,
          "lines (one text per line), the format of a table with the columns of the run's data, or folders (one "
          "text per file); auto: by the name of the file, tsv where all its first lines have more columns than "
          "a text, folders for a folder, and for a file if the run was trained on folders")
      ->check(CLI::IsMember(input_formats()))
      ->capture_default_str();
  command
      .add_option("--text-column", input.text_columns,
                  "number, name or key of the column of the texts, for a table with other columns than the run's data; "
                  "repeated for a pair of texts")
      ->type_name("COLUMN")
      ->allow_extra_args(false);
  add_set_option(command, options.overrides);
}

void add_beam_options(CLI::App& command, PredictOptions& completions) {
  add_number(command, "--beam", completions.beam, between(1, 1024),
             "for pairs: width of the beam search; 1 = greedy decoding");
  add_number(command, "--length-penalty", completions.length_penalty, between(-10, 10),
             "for beam search: texts of n tokens are compared by ln p / n^PENALTY");
}

TextInput open_texts(const Run& run, TextOptions options, const std::string& command) {
  TextInputOptions& input = options.input;
  input.utf8 = run.tokenizer->needs_utf8();
  input.classes = run.classes;
  input.command = command + " " + options.run;
  return TextInput(input, run.config.data);
}

}  // namespace capstan
