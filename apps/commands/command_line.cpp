// The whole command line: all commands, the options that all of them have, and what runs before any of them.
// tests/cli/runs/test_commands.cpp.
#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/output.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/io/log.hpp"
#include "core/machine/kernel_levels.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "core/strings/strings.hpp"

namespace capstan {
namespace {

struct LogOptions {
  std::string level;                    // a name of LogLevel; empty: not given
  bool quiet = false, verbose = false;  // short for the levels warning and debug
};

void add_log_options(CommandParser& command, LogOptions& options) {
  std::vector<std::string> levels;
  for (const auto& level : enum_names(LogLevel::info)) levels.emplace_back(level.name);
  command.add_choice("--log-level", options.level, levels,
                     "show messages of this level and those above it: " + join(levels), "LEVEL");
  command.add_flag("-q,--quiet", options.quiet, "show only warnings and errors: --log-level warning");
  command.add_flag("-v,--verbose", options.verbose, "show also what helps to find a cause: --log-level debug");
}

void apply(const LogOptions& options) {
  if (int{options.quiet} + int{options.verbose} + int{!options.level.empty()} > 1)
    throw ConfigError("--log-level, --quiet and --verbose exclude each other");
  if (options.quiet) set_log_level(LogLevel::warning);
  if (options.verbose) set_log_level(LogLevel::debug);
  if (!options.level.empty()) set_log_level(enum_value<LogLevel>(options.level).value());
}

/// Logs, for --verbose, what a slow or a different result is asked about first: version, threads, kernels and
/// libraries.
void describe_machine() {
  const BlasInfo blas = blas_info();
  log_debug(fmt::format("capstan {}: {} threads, kernels for {}, {} for {}, products of floats by {}", CAPSTAN_VERSION,
                        threads(), kernel_level(), blas.version, blas.core, blas.float_products));
}

}  // namespace

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
        add_score_command,   add_embed_command,   add_generate_command, add_inspect_command, add_list_command,
        add_compare_command, add_metrics_command, add_report_command,   add_verify_command,  add_replay_command,
        add_clean_command,   add_slim_command,    add_export_command,   add_serve_command,   add_data_command,
        add_config_command,  add_pages_commands})
    add(cli);
  LogOptions log;
  cli.for_each_command([&log](CommandParser& command) { add_log_options(command, log); });
  const std::variant<Command, int> parsed = cli.parse(argc, argv);
  return run_command([&] {
    if (const int* const code = std::get_if<int>(&parsed)) return *code;  // --help can fail, too
    apply(log);
    check_kernel_choice();
    describe_machine();
    return std::get<Command>(parsed)();
  });
}

}  // namespace capstan
