#include "apps/command_line/options.hpp"

#include <filesystem>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/recipes.hpp"
#include "core/base/error.hpp"
#include "core/strings/affixes.hpp"
#include "core/strings/nearest.hpp"

namespace capstan {

namespace {

/// "train.lr=1e-3", and not the path of a file.
bool looks_like_override(const std::string& text) {
  std::error_code unknown;
  return text.substr(0, text.find('/')).find('=') != std::string::npos && !std::filesystem::exists(text, unknown);
}

std::string remedy_for(const std::string& argument) {
  if (looks_like_override(argument)) return fmt::format("a value of a key is given with --set {}", argument);
  std::error_code unknown;
  if (recipe_path(argument) == argument && !ends_with(argument, ".yaml") && std::filesystem::exists(argument, unknown))
    return fmt::format("data are given with --set data.train=[{}], after --config", argument);
  return fmt::format("a configuration is given with --config {}", argument);
}

std::string file_problem(const std::string& file) {
  if (looks_like_override(file)) return fmt::format("{} is no file; {}", file, remedy_for(file));
  std::error_code unknown;
  if (std::filesystem::exists(file, unknown)) return "";  // the file's reader reports errors
  const std::string recipe = nearest(std::filesystem::path(file).stem().string(), recipe_names());
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
