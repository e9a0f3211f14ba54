// capstan verify: checks every file of runs for damage. tests/cli/runs/test_verify.cpp.
#include <iostream>

#include "apps/command_line/command_parser.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/io/log.hpp"
#include "run/setup/file_safety.hpp"
#include "run/summaries/run_check.hpp"
#include "run/summaries/run_record.hpp"

namespace capstan {
namespace {

struct VerifyOptions {
  std::vector<std::string> runs;  // run folders, or folders of runs
  bool trust = false;             // follow links that lead out of a run's folder
};

int verify(const VerifyOptions& options) {
  std::vector<std::string> runs;
  for (const std::string& folder : options.runs)  // one call each: beside runs, short runs of searches are left out
    for (const std::string& run : run_folders({folder})) runs.push_back(run);
  int64_t damaged = 0;
  for (const std::string& run : runs) {
    const int code = run_command([&] {  // each run by itself: one that cannot be read must not hide the others
      if (!options.trust) refuse_links_outside(run);
      const std::vector<RunPart> parts = check_run(run);
      const bool damage = any_damaged(parts);
      std::cout << fmt::format("{}: {}\n", run, damage ? "DAMAGED" : "whole");
      print_parts(parts, std::cout);
      return damage ? exit_failed : exit_done;
    });
    damaged += code != exit_done ? 1 : 0;
  }
  if (damaged > 0 && runs.size() > 1)
    log_error(fmt::format("{} of {} runs are damaged or cannot be read", damaged, runs.size()));
  return damaged > 0 ? exit_failed : exit_done;
}

}  // namespace

void add_verify_command(CommandParser& cli) {
  const auto [command, options] = cli.add_subcommand<VerifyOptions>(
      "verify", "Check every file of a run for damage, and say what could be lost", verify);
  command.add_option("runs", options.runs, "run folders, or folders of runs", "RUN")->required();
  command.add_flag("--trust", options.trust, trust_help);
  command.footer(
      R"(Checkpoints, metrics and the tokens of a large text are read in full and compared with their checksums.
Nothing is written. Exit code 0: everything is whole; 1: something is damaged.
For example:  capstan verify runs/*)");
}

}  // namespace capstan
