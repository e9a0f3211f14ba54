// The whole command line: all commands, the options that all of them have, and what runs before any of them.
// tests/apps/test_command_line.cpp.
#include <algorithm>

#include "apps/command_line/output.hpp"
#include "apps/command_line/usage_error.hpp"
#include "apps/commands/commands.hpp"
#include "core/io/log.hpp"
#include "core/machine/kernel_levels.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"

namespace capstan {
namespace {

/// Adds the options about messages to each command that has no subcommands.
void add_log_options(CLI::App& program) {
  for (CLI::App* const command : program.get_subcommands([](CLI::App*) { return true; })) {
    if (!command->get_subcommands([](CLI::App*) { return true; }).empty()) {
      add_log_options(*command);
      continue;
    }
    std::vector<std::string> levels;
    for (const auto& level : enum_names(LogLevel::info)) levels.emplace_back(level.name);
    const auto take = [](const std::string& level) { set_log_level(enum_value<LogLevel>(level).value()); };
    CLI::Option* const level =
        command->add_option_function<std::string>("--log-level", take, "show messages of this level and those above it")
            ->check(CLI::IsMember(levels));
    CLI::Option* const quiet = command->add_flag_callback(
        "-q,--quiet", [] { set_log_level(LogLevel::warning); }, "show only warnings and errors: --log-level warning");
    command
        ->add_flag_callback(
            "-v,--verbose", [] { set_log_level(LogLevel::debug); },
            "show also what helps to find a cause: --log-level debug")
        ->excludes(level)
        ->excludes(quiet);
    quiet->excludes(level);
  }
}

/// Logs, for --verbose, what a slow or a different result is asked about first: version, threads, kernels and
/// libraries.
void describe_machine() {
  const BlasInfo blas = blas_info();
  log_debug(fmt::format("capstan {}: {} threads, kernels for {}, {} for {}, products of floats by {}", CAPSTAN_VERSION,
                        threads(), kernel_level(), blas.version, blas.core, blas.float_products));
}

/// The words of the command line, the last one first, as CLI11 takes them. `help COMMAND` and `version` become
/// --help and --version.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty() && words.front() == "version") words.front() = "--version";
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  std::reverse(words.begin(), words.end());
  return words;
}

}  // namespace

void add_commands(CLI::App& program) {
  for (AddCommand* const add :
       {add_train_command, add_sweep_command, add_autotune_command, add_eval_command, add_predict_command,
        add_score_command, add_embed_command, add_generate_command, add_inspect_command, add_compare_command,
        add_report_command, add_verify_command, add_slim_command, add_export_command, add_serve_command,
        add_data_command, add_config_command})
    add(program);
  add_log_options(program);
}

int run_command_line(int argc, char** argv) {
  const PrintableOutput output;  // results go to stdout, everything else to stderr
  CLI::App program{"Trains, compares and serves attention-free and linear-cost text models.", "capstan"};
  program.set_version_flag("--version", "capstan " CAPSTAN_VERSION, "Print the version");
  program.require_subcommand(1);
  program.footer(R"(Begin with:   capstan train --config lm --set data.train=[book.txt] --minutes 5
              capstan generate runs/lm --prompt "The "
More:         capstan SUBCOMMAND --help; all configuration keys: docs/configuration.md
Exit codes:   0 done, 1 failed, 2 wrong usage or configuration, 75 interrupted (the same command resumes it))");
  add_commands(program);
  program.parse_complete_callback([] {
    check_kernel_choice();
    describe_machine();
  });
  return run_command([&] {
    try {
      program.parse(words_of(argc, argv));
      return exit_done;
    } catch (const CLI::ParseError& error) {
      const bool unknown_command = program.get_subcommands().empty() && !program.remaining().empty();
      const bool is_usage_error = error.get_name() != "RuntimeError" && (error.get_exit_code() != 0 || unknown_command);
      return is_usage_error ? refuse_usage(program, error) : program.exit(error);
    }
  });
}

}  // namespace capstan
