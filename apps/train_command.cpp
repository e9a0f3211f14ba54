#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "apps/commands.hpp"
#include "apps/config/config.hpp"
#include "apps/options.hpp"
#include "apps/run_data.hpp"
#include "apps/run_model.hpp"
#include "core/error.hpp"
#include "core/machine_rates.hpp"
#include "core/parallel.hpp"
#include "train/profile_table.hpp"
#include "train/step_profiler.hpp"
#include "train/trainer.hpp"

namespace capstan {
namespace {

struct TrainOptions {
  ConfigOptions config;
  std::string resume_from;
  int64_t profile_steps = 0;  // 0: no profile
};

constexpr int64_t profile_warmup = 3;

void print_profile(const Profile& profile) {
  ProductRate product;
  product.measure();  // the first one touches the memory
  const MachineRates machine{triad_rate(16 << 20), product.measure()};
  std::cout << to_text(profile, machine);
  flush_output();
}

std::vector<std::string> preamble(const RunConfig& config, const RunData& data, const RunModel& model) {
  std::vector<std::string> lines = machine_lines();
  for (const std::string& line : data.description()) lines.push_back(line);
  const auto* text = std::get_if<TextSourceConfig>(&config.data);
  const auto* recall = std::get_if<AssociativeRecallConfig>(&config.data);
  const ModelSummary summary = model.summary(text != nullptr     ? text->sequence_length
                                             : recall != nullptr ? recall->length
                                                                 : model.position_limit().value_or(512));
  lines.push_back("model:\n" + to_text(summary));
  return lines;
}

int train_run(const TrainOptions& options) {
  const RunConfig config = load_config<RunConfig>(options.config.files, options.config.overrides,
                                                  [](const RunConfig& c, Problems& problems) {
                                                    const std::string obstacle = precision_obstacle(c.train);
                                                    if (!obstacle.empty()) problems.add("train.precision", obstacle);
                                                  });
  set_threads(static_cast<int>(config.threads));
  const std::filesystem::path folder = std::filesystem::path(config.folder) / config.name;
  const RunData data(config, nullptr, {});
  RunModel model(config, model_vocabulary(config, data.tokenizer()), static_cast<int64_t>(data.classes().size()));
  model.balance_classes(data.class_counts());

  const std::unique_ptr<BatchSource> valid = data.has(Split::valid) ? data.evaluation(Split::valid) : nullptr;
  TrainInputs inputs{model.task(),
                     model.params(),
                     data.training(),
                     valid.get(),
                     folder,
                     {{"model", to_yaml(config.model)},
                      {"data", data.identity()},
                      {"tokenizer", identity_of(data.tokenizer())},
                      {"classes", identity_of(data.classes())}},
                     static_cast<uint64_t>(config.seed)};
  if (!options.resume_from.empty()) inputs.resume_from = options.resume_from;
  inputs.preamble = preamble(config, data, model);
  inputs.on_ready = [&] { write_run_files(folder, config, data.tokenizer(), data.classes()); };
  StepProfiler profiler(profile_warmup, options.profile_steps, print_profile);
  if (options.profile_steps > 0) inputs.profiler = &profiler;
  const TrainResult result = train(inputs, config.train);
  if (options.profile_steps > 0) profiler.finish();
  return result.interrupted ? exit_interrupted : exit_done;
}

}  // namespace

void add_train_command(CLI::App& cli, const Choose& choose) {
  CLI::App* const command = cli.add_subcommand("train", "Train a model; the same command again goes on where it ended");
  const auto options = std::make_shared<TrainOptions>();
  add_config_options(*command, options->config);
  command->get_option("--config")->required();
  command
      ->add_option("--resume-from", options->resume_from,
                   "a checkpoint's folder to go on from, instead of the last one")
      ->type_name("FOLDER");
  command
      ->add_option(
          "--profile", options->profile_steps,
          fmt::format("print where the time of so many steps goes, per operation, on standard output ({} steps "
                      "warm up before); training then goes on and computes the same as without",
                      profile_warmup))
      ->type_name("[STEPS]")
      ->expected(0, 1)
      ->default_str("20")
      ->check(number_check(at_least(1)));
  command->footer(
      "All that a run makes lies in <folder>/<name>: config.yaml, metrics.jsonl, train.log, checkpoints/.\n"
      "For example:  capstan train --config configs/quickstart-lm.yaml --set name=mine train.steps=500");
  command->callback([options, choose] { choose([options] { return train_run(*options); }); });
}

}  // namespace capstan
