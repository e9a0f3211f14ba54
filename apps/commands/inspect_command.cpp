// capstan inspect: sizes, costs and tensors of a model, of a run or of a configuration.
// tests/cli/runs/test_commands.cpp.
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "apps/command_line/options.hpp"
#include "apps/command_line/recipes.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "run/run.hpp"
#include "run/setup/file_safety.hpp"
#include "run/summaries/inspection.hpp"
#include "run/summaries/tensor_list.hpp"
#include "run/yaml/config.hpp"

namespace capstan {
namespace {

struct InspectCommandOptions {
  std::vector<std::string> what;        // a run, a file of tensors, or configurations
  std::vector<std::string> overrides;   // --set KEY=VALUE, for configurations
  bool tensors = false, trust = false;  // trust: follow links that lead out of the run's folder
  InspectOptions inspected;
};

bool is_config(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension();
  return extension == ".yaml" || extension == ".yml";
}

void inspect_run(const InspectCommandOptions& options) {
  const std::filesystem::path what = options.what.front();
  if (what.extension() == ".safetensors") return print_tensors(what, std::cout);
  if (!options.trust) refuse_links_outside(run_folder_of(what));
  const Run run = Run::open(what);
  if (options.tensors) return print_tensors(run.weights, std::cout);
  std::cout << inspection_of(run, options.inspected.length);
}

/// What is given decides: configurations (.yaml) describe a model without weights, a .safetensors file has tensors
/// alone, anything else is a run.
int inspect(const InspectCommandOptions& options) {
  if (std::all_of(options.what.begin(), options.what.end(), is_config)) {
    std::cout << inspection_of(load_config<RunConfig>(options.what, options.overrides), options.inspected);
    return exit_done;
  }
  if (options.what.size() > 1)
    throw ConfigError("inspect takes one run, one file of tensors or several configurations");
  inspect_run(options);
  return exit_done;
}

}  // namespace

void add_inspect_command(CLI::App& program) {
  const auto [command, options] =
      add_command(program, "inspect", "Show parameters, cost and state of a model, or the tensors of a file", inspect);
  command
      .add_option("RUN|FILE", options.what,
                  "a run folder, configurations (.yaml; the last one that sets a key wins) or a file of tensors "
                  "(.safetensors)")
      ->required()
      ->transform([](const std::string& given) { return std::filesystem::exists(given) ? given : recipe_path(given); })
      ->type_name("");
  command.add_option("-s,--set", options.overrides, "with configurations: set a key (repeatable)")
      ->type_name("KEY=VALUE");
  add_number(command, "--length", options.inspected.length, length_from(0),
             "number of tokens per text for which costs are computed; 0 = the longest text that the model allows");
  add_number(command, "--vocabulary", options.inspected.vocabulary, between(1, 1 << 24),
             "with configurations: number of tokens in the vocabulary");
  add_number(command, "--classes", options.inspected.classes, between(2, 1 << 24),
             "with configurations: number of classes");
  command.add_flag("--tensors", options.tensors,
                   "with a run: list its tensors instead, with their shapes and the magnitude of their elements");
  command.add_flag("--trust", options.trust, trust_help);
  command.footer(R"(For example:  capstan inspect configs/enwik8.yaml --length 4096
              capstan inspect runs/quickstart-lm --tensors)");
}

}  // namespace capstan
