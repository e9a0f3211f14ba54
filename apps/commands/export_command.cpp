// capstan export: a trained model in the format of another program. tests/cli/runs/test_export.cpp.
#include <iostream>

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
  std::string run, output;  // a run folder, the folder to write
  ExportFormat format = ExportFormat::huggingface;
};

int export_model(const ExportCommandOptions& options) {
  const Run run = Run::open(options.run);
  for (const std::string& file : export_run(run, options.format, options.output))
    std::cout << (std::filesystem::path(options.output) / file).string() << '\n';
  flush_output();
  if (const std::string script = export_script(options.format); !script.empty())
    log_info("next: python " + shell_word((std::filesystem::path(options.output) / script).string()));
  return exit_done;
}

}  // namespace

void add_export_command(CLI::App& program) {
  const auto [command, options] =
      add_command(program, "export", "Write a trained model in the format of another program", export_model);
  add_run(command, options.run);
  add_word(command, "--format", options.format,
           "huggingface (transformers, in Python), or the same with a script that makes files for others: onnx (ONNX "
           "Runtime) or gguf (llama.cpp; models of Llama's shape only)");
  add_output(command, options.output, "FOLDER", "new or empty folder")->required();
  command.footer(R"(For example:  capstan export runs/quickstart-lm --format huggingface --output exported)");
}

}  // namespace capstan
