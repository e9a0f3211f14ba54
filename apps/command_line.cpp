#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <new>

#include "apps/commands.hpp"
#include "core/error.hpp"

namespace capstan {
namespace {

int run(const Command& command) {
  try {
    return command();
  } catch (const ConfigError& error) {
    spdlog::error("{}", error.what());
    return exit_wrong_usage;
  } catch (const std::bad_alloc&) {
    spdlog::error("out of memory: lower train.batch_size, or set train.micro_batch_tokens or model.recompute");
    return exit_failed;
  } catch (const std::exception& error) {
    spdlog::error("{}", error.what());
    return exit_failed;
  }
}

}  // namespace

int run_command_line(int argc, char** argv) {
  spdlog::set_default_logger(spdlog::stderr_color_st("capstan"));  // results go to stdout, everything else to stderr
  spdlog::set_pattern("%^%l%$: %v");
  CLI::App cli{"Trains, compares and serves attention-free and linear-cost text models.", "capstan"};
  cli.require_subcommand(1);
  cli.footer("Begin with:  capstan train --config configs/quickstart-lm.yaml\n"
             "Exit codes:  0 done, 1 failed, 2 wrong usage or configuration, 75 interrupted (the same command goes on)");
  Command chosen;
  const Choose choose = [&chosen](Command command) { chosen = std::move(command); };
  add_train_command(cli, choose);
  add_eval_command(cli, choose);
  add_predict_command(cli, choose);
  add_generate_command(cli, choose);
  add_inspect_command(cli, choose);
  add_import_command(cli, choose);
  add_config_command(cli, choose);
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return cli.exit(error) == 0 ? exit_done : exit_wrong_usage;
  }
  return run(chosen);
}

}  // namespace capstan
