// capstan eval: loss, accuracy and further figures of a trained model on a split. tests/cli/runs/test_eval.cpp.
#include <iostream>
#include <optional>

#include "apps/command_line/options.hpp"
#include "apps/command_line/text_options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "run/run.hpp"
#include "run/setup/run_data.hpp"

namespace capstan {
namespace {

struct EvalOptions {
  std::string run, split, format = "text";  // split: empty: valid, or test without valid
  std::vector<std::string> overrides;       // --set KEY=VALUE, for keys of the run
  DecodeWeights weights = DecodeWeights::float32;
  PredictOptions completions;  // how the sources of pairs are completed
  AdaptOptions adapting;       // cache and learning while texts are scored
};

int evaluate_run(const EvalOptions& options) {
  if (options.adapting.decay != AdaptOptions().decay && options.adapting.rate == 0)
    throw ConfigError("--adapt-decay: is for --adapt RATE");
  const bool rounds = options.weights != DecodeWeights::float32;
  if (rounds && options.adapting.rate > 0)
    throw ConfigError("--weights: weights that go on learning (--adapt) are float32");
  const Run opened = Run::open(options.run, options.overrides);
  const Run run = rounds ? opened.rounded(options.weights) : opened;
  std::optional<Split> split;
  if (!options.split.empty()) split = split_named(options.split);
  const EvalReport report = run.evaluate(split, options.completions, options.adapting);
  options.format == "json" ? print_json(report, std::cout) : print_text(report, std::cout);
  return exit_done;
}

void add_adapt_options(CLI::App& command, AdaptOptions& options) {
  const std::string purpose = "for language models: further figures with";
  add_number(command, "--cache", options.cache, between(0, max_cached_tokens),
             purpose + " a continuous cache of so many tokens, whose rule is chosen on the validation data");
  add_number(command, "--adapt", options.rate, between(0, 1),
             purpose +
                 " weights that go on learning, at this rate, from each window after it was scored (dynamic "
                 "evaluation); 1e-4 to 3e-4 is a good start");
  add_number(command, "--adapt-decay", options.decay, between(0, 1),
             "for --adapt: share of the way back to the trained weights that each window goes");
}

}  // namespace

void add_eval_command(CLI::App& program) {
  const auto [command, options] =
      add_command(program, "eval",
                  "Evaluate a trained model on a split of its data: loss, accuracy and related figures", evaluate_run);
  add_run(command, options.run);
  command.add_option("--split", options.split,
                     "train, valid or test; default: valid, or test if the run has no validation data");
  add_set_option(command, options.overrides);
  add_format(command, options.format, {"text", "json"});
  add_adapt_options(command, options.adapting);
  add_word(command, "--weights", options.weights,
           "evaluate with all matrices rounded as generate and serve store those that they multiply by");
  add_beam_options(command, options.completions);
  command.footer(
      R"(Of a classifier, it prints:
  targets            texts that were evaluated
  loss               mean of -ln(probability of the right class): 0 is perfect, guessing among N classes gives ln N
  accuracy           share of texts whose class is right
  macro_f1           mean over the classes of f1 = 2 precision recall / (precision + recall): rare ones count the same
  precision, recall  of a class: share of the texts given it that have it; share of those that have it that are given it
  calibration_error  how far probabilities are from the shares that are right: with 0, 0.8 is right 8 times in 10
  average_precision  mean of precision over all thresholds of the probability: 1 if all texts of a class come first
Figures of language models and of several labels: docs/command-line.md, "What eval prints".
For example:  capstan eval runs/quickstart-classifier --split test
              capstan eval runs/classify --set data.test=[other.tsv] --split test)");
}

}  // namespace capstan
