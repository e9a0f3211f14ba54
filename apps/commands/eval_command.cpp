// capstan eval: loss, accuracy and further figures of a trained model on a split. tests/cli/runs/test_eval.cpp.
#include <filesystem>
#include <iostream>
#include <optional>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/command_line/text_options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "run/predictions/gzip_baseline.hpp"
#include "run/run.hpp"
#include "run/setup/run_data.hpp"

namespace capstan {
namespace {

struct EvalOptions {
  std::string run, split, format = "text", weights = "float32";  // split: empty: valid, or test without valid
  std::vector<std::string> overrides;                            // --set KEY=VALUE, for keys of the run
  bool gzip = false, curves = false;  // compare with gzip; precision and recall over thresholds
  PairOptions completions;            // how the sources of pairs are completed
  AdaptOptions adapting;              // cache and learning while texts are scored
};

/// Prints bits per byte, of the model and of gzip -9, for each kind of file.
void print_comparison(const std::vector<GzipTally>& tallies) {
  std::cout << fmt::format("Held-out files, each on its own, in bits per byte:\n{:<8}{:>7}{:>12}{:>14}{:>12}\n", "",
                           "files", "bytes", "this model", "gzip -9");
  for (const GzipTally& tally : tallies)
    std::cout << fmt::format("{:<8}{:>7}{:>12}{:>14.3f}{:>12.3f}\n", tally.kind, tally.files, tally.bytes,
                             tally.model_bits(), tally.gzip_bits());
}

/// A remedy for a second argument: a file is probably meant to be evaluated, anything else to be another run.
std::string eval_remedy(const std::string& argument) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(argument, unknown)) return one_run(argument);
  return fmt::format("a file is evaluated with --set data.test=[{}] --split test", argument);
}

int evaluate_run(const EvalOptions& options) {
  refuse_ranks("capstan eval");
  check_adapt_options(options.adapting);
  const DecodeWeights weights = weights_named(options.weights);
  if (weights != DecodeWeights::float32 && options.adapting.rate > 0)
    throw ConfigError("--weights: weights that go on learning (--adapt) are float32");
  const Run opened = Run::open(options.run, options.overrides);
  const Run run = weights == DecodeWeights::float32 ? opened : opened.rounded(weights);
  std::optional<Split> split;
  if (!options.split.empty()) split = split_named(options.split);
  if (options.gzip) {
    const auto data = open_saved_data(run.saved(), split ? *split : default_split(run.config()));
    print_comparison(compare_with_gzip(run.saved(), *data, held_out_split(options.split, *data)));
    return exit_done;
  }
  const EvalReport report = run.evaluate(split, options.completions, options.adapting);
  options.format == "json" ? print_json(report, std::cout) : print_text(report, std::cout, options.curves);
  return exit_done;
}

}  // namespace

void add_eval_command(CommandParser& cli) {
  const auto [command, options] = cli.add_subcommand<EvalOptions>(
      "eval", "Evaluate a trained model on a split of its data: loss, accuracy and related figures", evaluate_run);
  command.add_option("run", options.run, "run folder, or the folder of a checkpoint", "RUN")->required();
  command.add_option("--split", options.split,
                     "train, valid or test; default: valid, or test if the run has no validation data");
  add_set_option(command, options.overrides);
  command.add_choice("--format", options.format, {"text", "json"}, "text, or json (everything on one line)");
  command.add_flag("--curves", options.curves,
                   "for classifiers: precision and recall of each class over thresholds of its probability");
  command.add_flag(
      "--compare-gzip", options.gzip,
      "for language models: bits per byte of the held-out files, compared with gzip -9, separately for code and prose");
  add_adapt_options(command, options.adapting, "for language models: further figures with");
  add_weights_option(command, options.weights,
                     "evaluate with all matrices rounded as generate and serve store those that they multiply by");
  command.add_number("--beam", options.completions.beam, between(1, 1024),
                     "for pairs: width of the beam search; 1 = greedy decoding");
  command.add_number("--length-penalty", options.completions.length_penalty, between(-10, 10),
                     "for beam search: texts of n tokens are compared by ln p / n^PENALTY");
  command.on_stray_argument(eval_remedy);
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
For example:  capstan eval runs/quickstart-classifier --split test)");
}

}  // namespace capstan
