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
  cli.require_subcommand();
  cli.footer(R"(Begin with:   capstan train --config lm --set data.train=[book.txt] --minutes 5
              capstan generate runs/lm --prompt "The "
More:         capstan SUBCOMMAND --help; all configuration keys: docs/configuration.md
Exit codes:   0 done, 1 failed, 2 wrong usage or configuration, 75 interrupted (the same command resumes it))");
  for (AddCommand* const add :
       {add_train_command,   add_sweep_command,   add_autotune_command, add_eval_command,    add_predict_command,
        add_score_command,   add_embed_command,   add_generate_command, add_inspect_command, add_import_command,
        add_compare_command, add_metrics_command, add_report_command,   add_verify_command,  add_clean_command,
        add_slim_command,    add_export_command,  add_serve_command,    add_data_command,    add_config_command,
        add_pages_commands})
    add(cli);
  const std::variant<Command, int> parsed = cli.parse(argc, argv);
  return run_command([&parsed] {
    if (const int* const code = std::get_if<int>(&parsed)) return *code;  // --help can fail, too
    check_kernel_choice();
    return std::get<Command>(parsed)();
  });
}

}  // namespace capstan
