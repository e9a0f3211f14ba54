// capstan list: the runs that there are. tests/cli/runs/test_strange_runs.cpp.
#include <filesystem>
#include <iostream>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/output.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/io/log.hpp"
#include "core/strings/strings.hpp"
#include "run/summaries/run_list.hpp"

namespace capstan {
namespace {

struct ListOptions {
  std::vector<std::string> folders = {"runs"};  // where recipes put runs; it may not be there yet
  std::string format = "text";
};

int list(const ListOptions& options) {
  std::error_code unknown;
  const bool begun = options.folders != ListOptions().folders || std::filesystem::exists("runs", unknown);
  const std::vector<ListedRun> runs = begun ? list_runs(options.folders) : std::vector<ListedRun>{};
  if (options.format == "json")
    print_json(runs, std::cout);
  else if (!runs.empty())
    print_text(runs, std::cout, output_columns());
  if (runs.empty())
    log_info(
        fmt::format("there are no runs below {} yet; this makes one: capstan train --config classify --set "
                    "data.train=[FILE] (a table of texts and labels; of a text: --config lm)",
                    join(options.folders)));
  return exit_done;
}

}  // namespace

void add_list_command(CommandParser& cli) {
  const auto [command, options] = cli.add_subcommand<ListOptions>(
      "list", "List runs: type of model, data, best validation, size on disk and age", list);
  command.add_option("folders", options.folders, "folders of runs, or run folders", "FOLDER");
  command.add_choice("--format", options.format, {"text", "json"}, "text, or json (everything on one line)");
  command.footer(
      R"(What was written last comes first. The score is the best validation by train.monitor, and "of"
says of which texts and, for a cost, by which train.costs: figures of others do not tell which run is better.
For example:  capstan list
              capstan list runs/sweeps --format json)");
}

}  // namespace capstan
