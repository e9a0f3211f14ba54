#include <filesystem>
#include <iostream>
#include <memory>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/command_line/rank_options.hpp"
#include "apps/commands/commands.hpp"
#include "apps/commands/train_child.hpp"
#include "core/base/error.hpp"
#include "run/training/search_space.hpp"
#include "run/training/sweep.hpp"
#include "run/training/train_run.hpp"

namespace capstan {
namespace {

struct TrainOptions {
  ConfigOptions config;
  double minutes = 0;
  TrainRunOptions run;
};

}  // namespace

void add_train_command(CommandParser& cli, const Choose& choose) {
  CommandParser* const command = cli.add_subcommand("train", "Train a model, or resume a run that was stopped");
  const auto options = std::make_shared<TrainOptions>();
  add_config_options(*command, options->config)->required();
  command
      ->add_option("--minutes", options->minutes,
                   "time for the training, which chooses the number of steps: short for --set train.minutes=MINUTES "
                   "train.steps=0")
      ->check(number_check(greater(0)));
  command
      ->add_option("--resume-from", options->run.resume_from,
                   "checkpoint folder to continue from, instead of the last one")
      ->type_name("FOLDER");
  command
      ->add_option(
          "--profile", options->run.profile_steps,
          fmt::format("print the time of each operation over this many steps, after {} steps of warm-up, on standard "
                      "output; training then continues, and its results do not change",
                      profile_warmup))
      ->type_name("[STEPS]")
      ->expected(0, 1)
      ->default_str("20")
      ->check(number_check(count_from(1)));
  add_force_flag(*command, options->run.force);
  add_rank_options(*command, options->run.ranks);
  command->add_flag("--allow-mixed-kernels", options->run.mixed_kernels,
                    "with several processes: train even if they compute with different kernels; results then depend on "
                    "which of them computes what");
  command->footer(
      "A run writes its files to <folder>/<name>: config.yaml, metrics.jsonl, train.log, checkpoints/.\n"
      "With several processes, which get the same results as one: mpirun -n 4 capstan train ... (Slurm: srun)\n"
      "For example:  capstan train --config configs/quickstart-lm.yaml --set name=mine train.steps=500\n"
      "              capstan train --config configs/lm.yaml --set data.train=[book.txt] --minutes 30");
  command->callback([options, choose] {
    choose([options] {
      std::vector<std::string>& overrides = options->config.overrides;
      if (options->minutes > 0)  // in front: what is given with --set wins
        overrides.insert(overrides.begin(), {"train.steps=0", fmt::format("train.minutes={:g}", options->minutes)});
      return run_on_ranks(options->run.ranks, [&](Communicator& ranks) {
        const ConfigCheck check = [&](const RunConfig& config, Problems& problems) {
          if (options->minutes > 0 && config.train.steps > 0)
            problems.add("train.steps", "--minutes chooses the number of steps: give one of the two");
          const std::filesystem::path folder = std::filesystem::path(config.folder) / config.name;
          if (std::filesystem::exists(folder / search_file))
            problems.add("name", fmt::format("{} is the folder of a search by capstan autotune: choose another name",
                                             folder.string()));
          options->run.force ? check_forced(config, problems) : check_trainable_on(ranks, config, problems);
        };
        options->run.profile = &std::cout;
        return exit_code_of(train_run(load_run(options->config, check), options->run, ranks));
      });
    });
  });
}

}  // namespace capstan
