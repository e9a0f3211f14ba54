// capstan predict: labels, filled blanks or completions of texts, printed or as columns of their table.
// tests/cli/runs/test_predictions.cpp, test_tables.cpp and, for --explain, test_linear.cpp.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/command_line/output.hpp"
#include "apps/command_line/text_options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/io/log.hpp"
#include "core/io/progress.hpp"
#include "core/strings/printable.hpp"
#include "run/predictions/prediction_writer.hpp"
#include "run/setup/file_safety.hpp"

namespace capstan {
namespace {

struct PredictCommandOptions {
  std::string format = "tsv", output;  // output: the table to write; empty: predictions are printed
  TextOptions texts;
  PredictionFormat shown;      // how predictions are printed. Its top_k is --top-k as given; 0: it was not given
  PredictOptions predictions;  // how they are computed. Its top_k is at least 1: a blank needs a token in any case
  bool explain = false;        // print the n-grams that decided
};

constexpr size_t max_explained = 10;  // n-grams printed for each label: a longer list hides the next label

/// A line with a label's decision value, then a line for each of the n-grams that add most to it or take most from it.
std::string explanation_lines(const TextExplanation& explanation, const std::string& label, size_t column) {
  double sum = explanation.bias[column];
  for (const TextExplanation::Ngram& ngram : explanation.ngrams) sum += ngram.logits[column];
  std::string lines = fmt::format("  {:+.4f}  {}, of {} n-grams\n", sum, label, explanation.ngrams.size());
  for (const auto& [weight, name] : strongest_ngrams(explanation, column, max_explained, "(constant)"))
    lines += fmt::format("  {:+.4f}    {}\n", weight, printable(name));
  return lines;
}

void explain(const Run& run, const InputText& text, const Prediction& prediction) {
  const TextExplanation explanation = run.explain(text);
  for (const Guess& label : prediction.labels) {
    const auto column = std::find(run.classes().begin(), run.classes().end(), label.text) - run.classes().begin();
    std::cout << explanation_lines(explanation, label.text, static_cast<size_t>(column));
  }
}

/// Throws ConfigError for options that contradict each other.
void refuse_contradictions(const PredictCommandOptions& options) {
  const bool to_table = !options.output.empty(), jsonl = options.format == "jsonl";
  if (to_table && options.shown.errors)
    throw ConfigError("--output: all rows are written; leave out --errors, which shows some");
  if (to_table && (jsonl || options.shown.echo))
    throw ConfigError("--output: the file has the format and the texts of the table; leave out --format and --echo");
  if (options.explain && (to_table || jsonl))
    throw ConfigError("--explain: it is printed in lines below each text; leave out --output and --format jsonl");
}

/// Writes the table that was read, with the predictions as columns.
void write_table(const std::string& path, const TextInput& input, const std::vector<AddedField>& columns,
                 const std::vector<std::vector<AddedField>>& added) {
  const bool existed = std::filesystem::exists(path);
  replace_file(path, input.with_fields(columns, added));
  log_info(fmt::format("{}: {} rows with their predictions{}", path, added.size(),
                       existed ? "; replaced what was there" : ""));
}

/// Prints predictions batch by batch, or adds them as columns to the table that was read: then the file is written at
/// the end, whole or not at all. Only that shows progress: nothing is printed meanwhile, and a table's size is known.
int predict(PredictCommandOptions options) {
  refuse_ranks("capstan predict");
  refuse_contradictions(options);
  const bool to_table = !options.output.empty();
  if (to_table) check_output_file(options.output, {options.texts.input.file});
  const Run run = Run::open(options.texts.run, options.texts.overrides);
  if (to_table) refuse_data_file(options.output, run.config());
  PredictOptions& predictions = options.predictions;
  predictions.top_k = std::max<int64_t>(1, options.shown.top_k);
  check_predictions(run.saved(), predictions);
  if (options.explain) check_explanations(run.saved());
  options.shown.jsonl = options.format == "jsonl";
  options.shown.brief = output_columns() > 0;         // of many classes, a terminal gets the best three
  options.texts.input.labels = options.shown.errors;  // --errors compares predictions with the labels of the texts
  PredictionWriter writer(run.saved(), options.shown, std::cout);
  TextInput input = open_texts(run, options.texts, "capstan predict");
  if (to_table)
    input.check_table(options.output);
  else
    writer.write_header();
  std::vector<std::vector<AddedField>> added;
  Progress progress(log_info, "predicting", static_cast<double>(input.bytes()));
  for_each_batch(input, static_cast<size_t>(predictions.batch_size), [&](const std::vector<InputText>& texts) {
    const std::vector<Prediction> results = run.predict(texts, predictions);
    predictions.first += static_cast<int64_t>(texts.size());  // sampling counts texts over batches
    for (size_t i = 0; i < texts.size(); ++i) {
      if (!to_table) {
        if (writer.write(texts[i], results[i]) && options.explain) explain(run, texts[i], results[i]);
        continue;
      }
      added.push_back(writer.fields(results[i]));
      progress.add(texts[i].text.size());
    }
  });
  if (to_table) write_table(options.output, input, writer.columns(), added);
  if (const std::string summary = writer.summary(); !summary.empty()) log_info(summary);
  return exit_done;
}

void add_completion_options(CommandParser& command, PairOptions& completions) {
  command.add_number("-n,--tokens", completions.tokens, length_from(0),
                     "for pairs: largest number of new tokens; 0 = what data.max_length leaves");
  command.add_number("--beam", completions.beam, between(1, 1024),
                     "for pairs: width of the beam search; 1 = greedy decoding");
  command.add_number("--length-penalty", completions.length_penalty, between(-10, 10),
                     "for beam search: texts of n tokens are compared by ln p / n^PENALTY");
  command.add_number("--temperature", completions.sampling.temperature, at_least(0),
                     "for pairs: above 0 = sample; 0 = always the most probable token");
  command.add_number("--top-p", completions.sampling.top_p, between(0, 1), "for sampling: as in capstan generate");
  command.add_number("--min-p", completions.sampling.min_p, between(0, 1), "for sampling: as in capstan generate");
  command.add_number("--seed", completions.sampling.seed, at_least(0),
                     "for sampling: the same seed gives the same texts");
}

}  // namespace

void add_predict_command(CommandParser& cli) {
  const auto [command, options] = cli.add_subcommand<PredictCommandOptions>(
      "predict", "Label texts, fill their blanks or complete them with a trained model, one text after the other",
      predict);
  add_text_options(command, options.texts);
  command.add_choice("--format", options.format, {"tsv", "jsonl"}, "output: tsv or jsonl");
  command.add_number("--batch-size", options.predictions.batch_size, between(1, 65536), "number of texts per batch");
  command
      .add_number("-k,--top-k", options.shown.top_k, between(1, 65536),
                  "show this many of the likeliest classes, tokens of a blank or completions (with --beam)")
      ->without_default();
  command.add_number(
      "--threshold", options.predictions.threshold, between(0, 1),
      "for multi-label classifiers: probability from which a text has a label; 0 = the one that training "
      "chose on the validation data");
  command.add_flag("--echo", options.shown.echo, "print the text, too (jsonl always has it)");
  command.add_flag("--errors", options.shown.errors,
                   "read a table with labels (or targets) and print only what is predicted wrongly");
  command.add_flag("--explain", options.explain,
                   "for linear classifiers: also the n-grams that add most to a label's decision value, or take most "
                   "from it");
  command.add_option("-o,--output", options.output,
                     "write the table that is read to this file, with the predictions as columns behind its own",
                     "FILE");
  command.add_option("--blank", options.predictions.blank, "for masked language models: what marks a blank", "TEXT");
  add_completion_options(command, options.predictions.completions);
  command.on_stray_argument([](const std::string&) {
    return "texts are read from one file or from standard input: echo TEXT | capstan predict RUN";
  });
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
