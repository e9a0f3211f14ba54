#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/output.hpp"
#include "apps/commands/commands.hpp"
#include "core/machine/kernel_levels.hpp"
#include "train/records/log.hpp"

namespace capstan {

int run_command_line(int argc, char** argv) {
  // Results go to stdout, everything else to stderr.
  const PrintableOutput output;
  CommandParser cli{"Trains, compares and serves attention-free and linear-cost text models.", "capstan"};
  cli.set_version_flag("--version", "capstan " CAPSTAN_VERSION, "Print the version");
  cli.require_subcommand(1);
  cli.footer(
      "Begin with:   capstan train --config configs/quickstart-lm.yaml\n"
      "              capstan generate runs/quickstart-lm --prompt \"The \"\n"
      "More:         capstan SUBCOMMAND --help; all configuration keys: docs/configuration.md\n"
      "Exit codes:   0 done, 1 failed, 2 wrong usage or configuration, 75 interrupted (the same command resumes it)");
  Command chosen;
  const Choose choose = [&chosen](Command command) { chosen = std::move(command); };
  add_train_command(cli, choose);
  add_sweep_command(cli, choose);
  add_autotune_command(cli, choose);
  add_eval_command(cli, choose);
  add_predict_command(cli, choose);
  add_score_command(cli, choose);
  add_embed_command(cli, choose);
  add_generate_command(cli, choose);
  add_inspect_command(cli, choose);
  add_import_command(cli, choose);
  add_compare_command(cli, choose);
  add_metrics_command(cli, choose);
  add_report_command(cli, choose);
  add_verify_command(cli, choose);
  add_data_command(cli, choose);
  add_config_command(cli, choose);
  add_pages_commands(cli, choose);
  if (const auto code = cli.parse(argc, argv)) return run_command([&code] { return *code; });  // --help can fail, too
  return run_command([&chosen] {
    check_kernel_choice();
    return chosen();
  });
}

}  // namespace capstan
