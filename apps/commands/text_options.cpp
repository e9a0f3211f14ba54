#include "apps/commands/text_options.hpp"

#include "apps/command_line/command_parser.hpp"

namespace capstan {

void add_text_options(CommandParser& command, std::string& run, TextInputOptions& input) {
  command.add_option("run", run, "run folder, or the folder of a checkpoint")->required()->type_name("RUN");
  command.add_option("file", input.file, "the texts; - is standard input")->capture_default_str()->type_name("FILE");
  command
      .add_option("--input", input.format,
                  "lines (one text per line), or tsv, csv, jsonl or fasttext with the columns of the run's data; auto: "
                  "csv and jsonl by the name of the file, otherwise lines")
      ->capture_default_str()
      ->one_of({"auto", "lines", "tsv", "csv", "jsonl", "fasttext"});
}

}  // namespace capstan
