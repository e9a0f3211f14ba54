#include "apps/command_line/options.hpp"

#include <algorithm>
#include <filesystem>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/recipes.hpp"
#include "core/base/error.hpp"
#include "core/strings/nearest.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/saved_config.hpp"

namespace capstan {

namespace {

/// "train.lr=1e-3", and not the path of a file.
bool looks_like_override(const std::string& text) {
  std::error_code unknown;
  return text.substr(0, text.find('/')).find('=') != std::string::npos && !std::filesystem::exists(text, unknown);
}

/// The configuration of a run that was moved leads to where it was.
std::string resume_command(const std::filesystem::path& run) {
  std::string command = "capstan train --config " + (run / "config.yaml").string();
  try {
    const RunConfig saved = load_run_config(run);
    std::error_code unknown;
    const std::filesystem::path path = std::filesystem::canonical(run, unknown);
    if (!std::filesystem::equivalent(path, std::filesystem::path(saved.folder) / saved.name, unknown))
      command += fmt::format(" --set folder={} name={}", path.parent_path().string(), path.filename().string());
  } catch (const Error&) {  // the command says what is wrong
  }
  return command;
}

std::string remedy_for(const std::string& argument) {
  if (looks_like_override(argument)) return fmt::format("a value of a key is given with --set {}", argument);
  std::error_code unknown;
  if (const auto folder = std::filesystem::path(argument); std::filesystem::exists(folder / "config.yaml", unknown))
    return "to resume this run: " + resume_command(folder);
  if (recipe_path(argument) == argument && !ends_with(argument, ".yaml") && std::filesystem::exists(argument, unknown))
    return fmt::format("data are given with --set data.train=[{}], after --config", argument);
  return fmt::format("a configuration is given with --config {}", argument);
}

/// "compare/listops" is meant by listops.
std::string nearest_recipe(const std::string& file) {
  const std::vector<std::string> names = recipe_names();
  const std::string stem = std::filesystem::path(file).stem().string();
  const auto below = std::find_if(names.begin(), names.end(), [&](const auto& n) { return ends_with(n, "/" + stem); });
  return below != names.end() ? *below : nearest(stem, names);
}

std::string file_problem(const std::string& file) {
  if (looks_like_override(file)) return fmt::format("{} is no file; {}", file, remedy_for(file));
  std::error_code unknown;
  for (const char* const table : {".csv", ".tsv", ".jsonl"})
    if (ends_with(file, table))
      return fmt::format("{0} is not a YAML configuration; data are given with --set data.train=[{0}]", file);
  if (std::filesystem::exists(file, unknown)) return "";  // the file's reader reports errors
  const std::string recipe = nearest_recipe(file);
  return recipe.empty() ? "" : fmt::format("{}: no such file and no such recipe, did you mean {}?", file, recipe);
}

}  // namespace

CommandOption* add_config_options(CommandParser& command, ConfigOptions& options) {
  command.on_stray_argument(remedy_for);
  CommandOption* const files =
      command
          .add_option("-c,--config", options.files,
                      "YAML files, or recipes by name (classify); the last one that sets a key wins", "FILE")
          ->replace(recipe_path)
          ->check(file_problem)
          ->repeats();
  command
      .add_option("-s,--set", options.overrides, "set a key; overrides all files: --set train.lr=3e-4 (repeatable)",
                  "KEY=VALUE")
      ->repeats();
  return files;
}

void add_force_flag(CommandParser& command, bool& force) {
  command.add_flag("--force", force,
                   "train even if the run needs more memory than the machine, its control group or ulimit allows");
}

std::string one_run(const std::string&) { return "this command takes one run; capstan compare takes several"; }

}  // namespace capstan
