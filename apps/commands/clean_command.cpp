// capstan clean: removes what only resuming a run needs. tests/cli/runs/test_clean.cpp.
#include <iostream>

#include "apps/command_line/command_parser.hpp"
#include "apps/commands/commands.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/file_safety.hpp"
#include "run/summaries/run_record.hpp"
#include "run/training/clean_run.hpp"

namespace capstan {
namespace {

struct CleanCommandOptions {
  std::vector<std::string> runs;  // run folders, or folders of runs
  CleanOptions options;
};

int clean(const CleanCommandOptions& given) {
  int code = exit_done;
  for (const std::string& run : run_folders(given.runs, ShortRuns::with)) {
    const int ended = run_command([&] {  // each run by itself: one that cannot be cleaned must not stop the others
      refuse_links_outside(run, "nothing is removed: replace the link by what it leads to, or remove it");
      int64_t bytes = 0;
      for (const CleanedPart& part : clean_run(run, given.options)) {
        std::cout << fmt::format("  {}  {}\n", part.path.string(), bytes_text(static_cast<double>(part.bytes)));
        bytes += part.bytes;
      }
      std::cout << (bytes == 0 ? fmt::format("{}: nothing to remove\n", run)
                               : fmt::format("{}: {} {}; lost: resuming this run, and its older checkpoints; the best "
                                             "model stays\n",
                                             run, bytes_text(static_cast<double>(bytes)),
                                             given.options.dry_run ? "would be removed" : "removed"));
      return exit_done;
    });
    if (ended != exit_done) code = exit_failed;
  }
  return code;
}

}  // namespace

void add_clean_command(CommandParser& cli) {
  const auto [command, options] = cli.add_subcommand<CleanCommandOptions>(
      "clean", "Remove what a run has for resuming alone: optimizer states and older checkpoints", clean);
  command.add_option("runs", options.runs, "run folders, or folders of runs", "RUN")->required();
  command.add_flag("--dry-run", options.options.dry_run, "say what would be removed, and remove nothing");
  command.add_flag("--unfinished", options.options.unfinished,
                   "also clean runs that have not reached their end, which can then not be resumed");
  command.footer(
      R"(The best model stays: predict, eval, generate and report work as before, and other runs can start
from them (train.init_from). A run that is interrupted while it is cleaned keeps it, too.
For example:  capstan clean --dry-run runs/*
              capstan clean runs/lm)");
}

}  // namespace capstan
