#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/command_line/rank_options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "core/strings/affixes.hpp"
#include "run/predictions/eval_report.hpp"
#include "run/predictions/gzip_baseline.hpp"
#include "run/setup/run_data.hpp"
#include "run/setup/run_model.hpp"
#include "run/setup/saved_config.hpp"
#include "train/records/log.hpp"

namespace capstan {
namespace {

struct EvalOptions {
  std::string run, split = "valid", format = "text";
  std::vector<std::string> overrides;
  bool gzip = false;
  CompletionOptions completions;
};

/// Loss of every file in nats; each file is a separate document.
std::vector<double> loss_per_file(const SavedRun& run, const FileEvaluation& evaluation) {
  std::vector<double> nats(evaluation.files.size());
  for (int64_t index = 0; index < evaluation.batches->batches_per_epoch(0); ++index) {
    const Batch batch = evaluation.batches->batch(0, index);
    // One row at a time: the loss of a batch is one sum, and a batch may hold windows of several files.
    for (int64_t row = 0; row < batch.tokens.dim(0); ++row) {
      const Batch single = rows_of(batch, row, row + 1);
      const TaskLoss loss = run.model->task().loss(single, Context{Segments(single.segment_ids)});
      nats[evaluation.file_of(batch.examples[row])] += static_cast<double>(loss.sum.value().item());
    }
  }
  return nats;
}

/// Text for people, as opposed to source code and configuration.
bool is_prose(const std::string& name) {
  if (std::filesystem::path(name).filename() == "CMakeLists.txt") return false;
  for (const char* const ending : {".md", ".txt", ".rst", ".adoc", ".tex"})
    if (name != ending && ends_with(name, ending)) return true;
  return false;
}

struct Tally {
  int64_t files = 0, bytes = 0, gzip_bytes = 0;
  double nats = 0;
};

void print_tally(const char* name, const Tally& tally) {
  if (tally.files == 0) return;
  const auto bytes = static_cast<double>(tally.bytes);
  std::cout << fmt::format("{:<8}{:>7}{:>12}{:>14.3f}{:>12.3f}\n", name, tally.files, tally.bytes,
                           tally.nats / bytes / std::log(2.0), 8 * static_cast<double>(tally.gzip_bytes) / bytes);
}

void compare_with_gzip(const SavedRun& run, const DataSource& data, Split split) {
  const FileEvaluation evaluation = data.evaluation_per_file(split);
  const std::vector<double> nats = loss_per_file(run, evaluation);
  const std::vector<HeldOutFile>& files = evaluation.files;
  Tally code, prose, all;
  for (size_t i = 0; i < files.size(); ++i) {
    const int64_t gzip_bytes = gzip_size(files[i].text());
    for (Tally* const tally : {is_prose(files[i].name) ? &prose : &code, &all}) {
      ++tally->files;
      tally->bytes += files[i].bytes;
      tally->gzip_bytes += gzip_bytes;
      tally->nats += nats[i];
    }
  }
  std::cout << fmt::format("Held-out files, each on its own, in bits per byte:\n{:<8}{:>7}{:>12}{:>14}{:>12}\n", "",
                           "files", "bytes", "this model", "gzip -9");
  print_tally("code", code);
  print_tally("prose", prose);
  print_tally("all", all);
}

int evaluate_run(const EvalOptions& options) {
  refuse_ranks("capstan eval");
  if (options.format != "text" && options.format != "json")
    throw ConfigError(fmt::format("--format: {} is not one of text, json", options.format));
  SavedRun run = open_run(options.run);
  refuse_options_without_pairs(run, options.completions);
  const bool multi_label = facts_of(run.config.data).multi_label();
  const int64_t known = model_vocabulary(run.config, *run.tokenizer);
  if (!options.overrides.empty()) run.config = load_run_config(run.folder, options.overrides);
  if (model_vocabulary(run.config, *run.tokenizer) > known)
    throw ConfigError(
        "--set: the model was trained without data.documents or data.separator and lacks the token that they "
        "add; leave these keys unchanged, or train a model with them");
  if (is_classifier(run.config.model) && facts_of(run.config.data).multi_label() != multi_label)
    throw ConfigError(fmt::format("--set: the model was trained with data.multi_label: {}; leave this key unchanged",
                                  multi_label ? "true" : "false"));
  set_threads(static_cast<int>(run.config.threads));
  reserve_product_memory();
  const Split split = split_named(options.split);
  const std::unique_ptr<DataSource> data = open_saved_data(run);
  for (const std::string& line : data->left_out()) log_info(line);
  if (options.gzip) {
    run.model->language_model();
    compare_with_gzip(run, *data, split);
    return exit_done;
  }
  const EvalReport report = evaluate_split(run, *data, split, options.completions);
  if (options.format == "json")
    print_json(report, std::cout);
  else
    print_text(report, std::cout);
  return exit_done;
}

}  // namespace

void add_eval_command(CommandParser& cli, const Choose& choose) {
  CommandParser* const command =
      cli.add_subcommand("eval", "Evaluate a trained model on a split of its data: loss, accuracy and related figures");
  const auto options = std::make_shared<EvalOptions>();
  command->add_option("run", options->run, "run folder, or the folder of a checkpoint")->required()->type_name("RUN");
  command->add_option("--split", options->split, "train, valid or test")->capture_default_str();
  command
      ->add_option("-s,--set", options->overrides, "change a key of the run: --set data.test=[other.txt] (repeatable)")
      ->type_name("KEY=VALUE")
      ->expected(-1);
  command->add_option("--format", options->format, "text, or json (everything on one line)")->capture_default_str();
  command->add_flag(
      "--compare-gzip", options->gzip,
      "for language models: bits per byte of the held-out files, compared with gzip -9, separately for code and prose");
  command->add_option("--beam", options->completions.beam, "for pairs: width of the beam search; 1 = greedy decoding")
      ->capture_default_str()
      ->check(number_check(between(1, 1024)));
  command
      ->add_option("--length-penalty", options->completions.length_penalty,
                   "for beam search: texts of n tokens are compared by ln p / n^PENALTY")
      ->capture_default_str()
      ->check(number_check(between(-10, 10)));
  command->on_stray_argument(one_run);
  command->footer("For example:  capstan eval runs/quickstart-classifier --split test");
  command->callback([options, choose] { choose([options] { return evaluate_run(*options); }); });
}

}  // namespace capstan
