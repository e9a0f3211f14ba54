// capstan export: a trained model in the format of another program. tests/cli/runs/test_export.cpp.
#include <iostream>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/command_line/output.hpp"
#include "apps/commands/commands.hpp"
#include "core/io/log.hpp"
#include "core/strings/printable.hpp"
#include "run/exports/export_run.hpp"
#include "run/run.hpp"

namespace capstan {
namespace {

struct ExportCommandOptions {
  std::string run, format, output;  // a run folder, a name of ExportFormat, the folder to write
};

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const auto& known : enum_names(ExportFormat{})) names.emplace_back(known.name);
  return names;
}

int export_model(const ExportCommandOptions& options) {
  refuse_ranks("capstan export");
  const Run run = Run::open(options.run);
  const ExportFormat format = *enum_value<ExportFormat>(options.format);
  for (const std::string& file : export_run(run.saved(), format, options.output))
    std::cout << (std::filesystem::path(options.output) / file).string() << '\n';
  flush_output();
  if (const std::string script = export_script(format); !script.empty())
    log_info("next: python " + shell_word((std::filesystem::path(options.output) / script).string()));
  return exit_done;
}

}  // namespace

void add_export_command(CommandParser& cli) {
  const auto [command, options] = cli.add_subcommand<ExportCommandOptions>(
      "export", "Write a trained model in the format of another program", export_model);
  command.add_option("run", options.run, "run folder, or the folder of a checkpoint", "RUN")->required();
  command.add_choice(
      "--format", options.format, format_names(),
      "huggingface (transformers, in Python), or the same with a script that makes files for others: onnx "
      "(ONNX Runtime) or gguf (llama.cpp; models of Llama's shape only)");
  command.add_option("--output", options.output, "new or empty folder", "FOLDER")->required();
  command.footer(R"(For example:  capstan export runs/quickstart-lm --format huggingface --output exported)");
}

}  // namespace capstan
