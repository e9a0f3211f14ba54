// capstan predict: labels, filled blanks or completions of texts, printed or as columns of their table.
// tests/cli/runs/test_predictions.cpp, test_tables.cpp and, for --explain, test_linear.cpp.
#include <algorithm>
#include <iostream>

#include "apps/command_line/options.hpp"
#include "apps/command_line/output.hpp"
#include "apps/command_line/text_options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "run/predictions/prediction_writer.hpp"
#include "run/setup/file_safety.hpp"

namespace capstan {
namespace {

struct PredictCommandOptions {
  std::string format = "tsv", output;  // output: the table to write; empty: predictions are printed
  TextOptions texts;
  PredictionFormat shown;      // how predictions are printed. Its top_k is --top-k as given; 0: it was not given
  PredictOptions predictions;  // how they are computed. Its top_k is at least 1: a blank needs a token in any case
};

int predict(PredictCommandOptions options) {
  const bool to_table = !options.output.empty();
  options.shown.jsonl = options.format == "jsonl";
  if (options.shown.explain && options.shown.jsonl)
    throw ConfigError("--explain: it is printed in lines below each text; leave out --format jsonl");
  if (to_table) check_output_file(options.output, {options.texts.input.file});
  const Run run = Run::open(options.texts.run, options.texts.overrides);
  if (to_table) refuse_data_file(options.output, run.config, run.folder);
  options.predictions.top_k = std::max<int64_t>(1, options.shown.top_k);
  check_predictions(run, options.predictions);
  check_format(run, options.shown);
  options.shown.brief = output_columns() > 0;         // of many classes, a terminal gets the best three
  options.texts.input.labels = options.shown.errors;  // --errors compares predictions with the labels of the texts
  TextInput input = open_texts(run, options.texts, "capstan predict");
  if (to_table)
    write_predicted_table(options.output, run, input, options.predictions, options.shown);
  else
    print_predictions(run, input, options.predictions, options.shown, std::cout, flush_output);
  return exit_done;
}

}  // namespace

void add_predict_command(CLI::App& program) {
  const auto [command, options] = add_command(
      program, "predict",
      "Label texts, fill their blanks or complete them with a trained model, one text after the other", predict);
  add_text_options(command, options.texts);
  add_format(command, options.format, {"tsv", "jsonl"});
  add_number(command, "--batch-size", options.predictions.batch_size, between(1, 65536), "number of texts per batch");
  add_number(command, "-k,--top-k", options.shown.top_k, between(1, 65536),
             "show this many of the likeliest classes, tokens of a blank or completions (with --beam)")
      ->default_str("");
  add_number(command, "--threshold", options.predictions.threshold, between(0, 1),
             "for multi-label classifiers: probability from which a text has a label; 0 = the one that training chose "
             "on the validation data");
  add_number(
      command, "--reject", options.predictions.reject, between(0, 1),
      "for classifiers: a text whose likeliest class has a lower probability gets the label none; eval shows what is "
      "right then; 0 = every text is answered");
  command.add_flag("--echo", options.shown.echo, "print the text, too (jsonl always has it)");
  command.add_flag("--errors", options.shown.errors,
                   "read a table with labels (or targets) and print only what is predicted wrongly");
  command.add_flag("--explain", options.shown.explain,
                   "for linear classifiers: also the n-grams that add most to a label's decision value, or take most "
                   "from it");
  CLI::Option* const output =
      add_output(command, options.output, "FILE",
                 "write the table that is read to this file, with the predictions as columns behind its own");
  for (const char* const printing : {"--format", "--echo", "--errors", "--explain"})
    output->excludes(command.get_option(printing));
  command.add_option("--blank", options.predictions.blank, "for masked language models: what marks a blank")
      ->capture_default_str();
  add_number(command, "-n,--tokens", options.predictions.max_tokens, length_from(0),
             "for pairs: largest number of new tokens; 0 = what data.max_length leaves");
  add_beam_options(command, options.predictions);
  command.footer(
      R"(Texts longer than those the model was trained with are shortened according to data.truncate; of blanks, as
many tokens around them are read. The two texts of a pair are separated by a tab. At the first text that cannot
be read, predict stops with an error, after printing the labels of the texts before it. Of more than ten
classes, a terminal shows the best three.
For example:  capstan predict runs/ag-news texts.txt
              capstan predict runs/ag-news --errors test.csv
              capstan predict runs/ag-news new.csv --output labelled.csv
              echo "[MAX 2 9 [MIN 4 7 ] 0 ]" | capstan predict runs/quickstart-classifier
              echo "The <mask> is out." | capstan predict runs/masked-lm --top-k 5
              echo "nine plus twelve" | capstan predict runs/pairs --beam 4)");
}

}  // namespace capstan
