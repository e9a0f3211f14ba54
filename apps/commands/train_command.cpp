// capstan train: trains a model, or resumes a run. tests/cli/training/test_interruption.cpp.
#include <iostream>

#include "apps/command_line/next_commands.hpp"
#include "apps/command_line/options.hpp"
#include "apps/command_line/rank_options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "run/setup/run_config.hpp"
#include "run/training/train_run.hpp"
#include "train/loop/signals.hpp"

namespace capstan {
namespace {

struct TrainOptions {
  ConfigOptions config;
  double minutes = 0;  // the time for training, which chooses the number of steps; 0: not given
  TrainRunOptions run;
};

/// Trains as the options say. --minutes sets train.steps and train.minutes in front of --set, whose values win.
int train_model(TrainOptions& options) {
  std::vector<std::string>& overrides = options.config.overrides;
  if (options.minutes > 0)
    overrides.insert(overrides.begin(), {"train.steps=0", fmt::format("train.minutes={:g}", options.minutes)});
  const EndingSignals reading(exit_interrupted);  // large data are read for minutes before there is anything to save
  return run_on_ranks(options.run.ranks, [&](Communicator& ranks) {
    const ConfigCheck check = [&](const RunConfig& config, Problems& problems) {
      if (options.minutes > 0 && config.train.steps > 0)
        problems.add("train.steps", "--minutes chooses the number of steps: give one of the two");
      check_single_run(config, options.run.force, ranks, problems);
    };
    options.run.profile = &std::cout;
    const RunConfig config = load_run(options.config, check);
    const TrainResult result = train_run(config, options.run, ranks);
    if (ranks.first() && !result.interrupted && config.train.progress != ProgressMode::none)
      say_next(config, folder_of(config).string());
    return exit_code_of(result);
  });
}

}  // namespace

void add_train_command(CLI::App& program) {
  const auto [command, options] =
      add_command(program, "train", "Train a model, or resume a run that was stopped", train_model);
  add_config_options(command, options.config)->required();
  add_number(command, "--minutes", options.minutes, greater(0),
             "time for the training, which chooses the number of steps: short for --set train.minutes=MINUTES "
             "train.steps=0")
      ->default_str("");
  command
      .add_option("--resume-from", options.run.resume_from,
                  "checkpoint folder to continue from, instead of the last one")
      ->type_name("FOLDER");
  add_number(command, "--profile", options.run.profile_steps, count_from(1),
             fmt::format("print the time of each operation over this many steps, after {} steps of warm-up, on "
                         "standard output; training then continues, and its results do not change",
                         profile_warmup))
      ->expected(0, 1)
      ->default_str("20")
      ->type_name("[STEPS]");
  add_force_flag(command, options.run.force);
  add_rank_options(command, options.run.ranks);
  command.add_flag("--allow-mixed-kernels", options.run.mixed_kernels,
                   "with several processes: train even if they compute with different kernels; results then depend on "
                   "which of them computes what");
  command.footer(R"(A run writes its files to <folder>/<name>: config.yaml, metrics.jsonl, train.log, checkpoints/.
With several processes, which get the same results as one: mpirun -n 4 capstan train ... (Slurm: srun)
For example:  capstan train --config configs/quickstart-lm.yaml --set name=mine train.steps=500
              capstan train --config configs/lm.yaml --set data.train=[book.txt] --minutes 30)");
}

}  // namespace capstan
