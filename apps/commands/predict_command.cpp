#include <algorithm>
#include <iostream>
#include <memory>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/command_line/rank_options.hpp"
#include "apps/commands/commands.hpp"
#include "apps/commands/text_options.hpp"
#include "core/base/error.hpp"
#include "run/predictions/prediction_writer.hpp"
#include "train/records/log.hpp"

namespace capstan {
namespace {

struct PredictCommandOptions {
  std::string run, format = "tsv";
  TextInputOptions input;
  PredictionFormat shown;
  PredictOptions predictions;
};

int predict(PredictCommandOptions options) {
  refuse_ranks("capstan predict");
  if (options.format != "tsv" && options.format != "jsonl")
    throw ConfigError(fmt::format("--format: {} is not one of tsv, jsonl", options.format));
  const Run run = Run::open(options.run);
  PredictOptions& predictions = options.predictions;
  predictions.top_k = std::max<int64_t>(1, options.shown.top_k);
  check_predictions(run.saved(), predictions);
  options.shown.jsonl = options.format == "jsonl";
  options.input.labels = options.shown.errors;
  PredictionWriter writer(run.saved(), options.shown, std::cout);
  TextInput input = open_texts(run, options.input, "capstan predict " + options.run);
  writer.write_header();
  for_each_batch(input, static_cast<size_t>(predictions.batch_size), [&](const std::vector<InputText>& texts) {
    const std::vector<Prediction> said = run.predict(texts, predictions);
    predictions.first += static_cast<int64_t>(texts.size());
    for (size_t i = 0; i < texts.size(); ++i) writer.write(texts[i], said[i]);
  });
  if (const std::string summary = writer.summary(); !summary.empty()) log_info(summary);
  return exit_done;
}

void add_completion_options(CommandParser& command, CompletionOptions& completions) {
  command
      .add_option("-n,--tokens", completions.tokens,
                  "for pairs: largest number of new tokens; 0 = what data.max_length leaves")
      ->capture_default_str()
      ->check(number_check(length_from(0)));
  command.add_option("--beam", completions.beam, "for pairs: width of the beam search; 1 = greedy decoding")
      ->capture_default_str()
      ->check(number_check(between(1, 1024)));
  command
      .add_option("--length-penalty", completions.length_penalty,
                  "for beam search: texts of n tokens are compared by ln p / n^PENALTY")
      ->capture_default_str()
      ->check(number_check(between(-10, 10)));
  command
      .add_option("--temperature", completions.sampling.temperature,
                  "for pairs: above 0 = sample; 0 = always the most probable token")
      ->capture_default_str()
      ->check(number_check(at_least(0)));
  command.add_option("--top-p", completions.sampling.top_p, "for sampling: as in capstan generate")
      ->capture_default_str()
      ->check(number_check(between(0, 1)));
  command.add_option("--min-p", completions.sampling.min_p, "for sampling: as in capstan generate")
      ->capture_default_str()
      ->check(number_check(between(0, 1)));
  command.add_option("--seed", completions.sampling.seed, "for sampling: the same seed gives the same texts")
      ->capture_default_str()
      ->check(number_check(at_least(0)));
}

}  // namespace

void add_predict_command(CommandParser& cli, const Choose& choose) {
  CommandParser* const command = cli.add_subcommand(
      "predict", "Label texts, fill their blanks or complete them with a trained model, one text after the other");
  const auto options = std::make_shared<PredictCommandOptions>();
  add_text_options(*command, options->run, options->input);
  command->add_option("--format", options->format, "output: tsv or jsonl")->capture_default_str();
  command->add_option("--batch-size", options->predictions.batch_size, "number of texts per batch")
      ->capture_default_str()
      ->check(number_check(between(1, 65536)));
  command
      ->add_option("-k,--top-k", options->shown.top_k,
                   "show this many of the likeliest classes, tokens of a blank or completions (with --beam)")
      ->check(number_check(between(1, 65536)));
  command
      ->add_option("--threshold", options->predictions.threshold,
                   "for multi-label classifiers: probability from which a text has a label; 0 = the one that training "
                   "chose on the validation data")
      ->capture_default_str()
      ->check(number_check(between(0, 1)));
  command->add_flag("--echo", options->shown.echo, "print the text, too (jsonl always has it)");
  command->add_flag("--errors", options->shown.errors,
                    "read a table with labels (or targets) and print only what is predicted wrongly");
  command->add_option("--blank", options->predictions.blank, "for masked language models: what marks a blank")
      ->capture_default_str()
      ->type_name("TEXT");
  add_completion_options(*command, options->predictions.completions);
  command->on_stray_argument([](const std::string&) {
    return "texts are read from one file or from standard input: echo TEXT | capstan predict RUN";
  });
  command->footer(
      "Texts longer than those the model was trained with are shortened according to data.truncate; of blanks, as "
      "many\n"
      "tokens around them are read. The two texts of a pair are separated by a tab. At the first text that cannot be "
      "read, predict stops with an error, after\n"
      "printing the labels of the texts before it.\n"
      "For example:  capstan predict runs/ag-news texts.txt\n"
      "              capstan predict runs/ag-news --errors test.csv\n"
      "              echo \"[MAX 2 9 [MIN 4 7 ] 0 ]\" | capstan predict runs/quickstart-classifier\n"
      "              echo \"The <mask> is out.\" | capstan predict runs/masked-lm --top-k 5\n"
      "              echo \"nine plus twelve\" | capstan predict runs/pairs --beam 4");
  command->callback([options, choose] { choose([options] { return predict(*options); }); });
}

}  // namespace capstan
