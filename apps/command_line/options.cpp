// Adds the options that several subcommands share, and checks their values. tests/cli/inputs/test_bad_input.cpp and
// test_data_check.cpp.
#include "apps/command_line/options.hpp"

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "apps/command_line/recipes.hpp"
#include "core/strings/strings.hpp"

namespace capstan {

namespace fs = std::filesystem;

namespace {

/// Is a text like "train.lr=1e-3" and not the path of a file?
bool looks_like_override(const std::string& text) {
  std::error_code unknown;
  return text.substr(0, text.find('/')).find('=') != std::string::npos && !fs::exists(text, unknown);
}

/// What is wrong with a file for --config; empty if nothing is.
std::string file_problem(const std::string& file) {
  if (looks_like_override(file)) return fmt::format("{0} is no file; a value of a key is given with --set {0}", file);
  for (const char* const table : {".csv", ".tsv", ".jsonl"})
    if (ends_with(file, table))
      return fmt::format("{0} is not a YAML configuration; data are given with --set data.train=[{0}]", file);
  std::error_code unknown;
  return fs::exists(file, unknown) ? "" : missing_recipe(file);  // what is wrong in a file, its reader reports
}

}  // namespace

std::function<std::string(const std::string& text)> within(const Constraint& limits) {
  return [limits](const std::string& text) {
    char* end = nullptr;  // must be the end of the text: CLI11 stores a number only if it is all of the text
    const auto number = static_cast<double>(std::strtold(text.c_str(), &end));
    const bool whole = !text.empty() && end == text.c_str() + text.size();
    if (whole && std::isfinite(number) && in_range(limits, number)) return std::string();
    return fmt::format("expected a number ({}), got {}", limits_text(limits), text);
  };
}

void add_format(CLI::App& command, std::string& format, const std::vector<std::string>& words) {
  command.add_option("--format", format, "how results are printed; json: on one line, jsonl: a line for each text")
      ->check(CLI::IsMember(words))
      ->capture_default_str();
}

CLI::Option* add_output(CLI::App& command, std::string& output, const std::string& type, const std::string& help) {
  return command.add_option("-o,--output", output, help)->type_name(type);
}

void add_run(CLI::App& command, std::string& run) {
  command.add_option("RUN", run, "run folder, or the folder of a checkpoint")->required()->type_name("");
}

void add_runs(CLI::App& command, std::vector<std::string>& runs, const std::string& help) {
  command.add_option("RUN", runs, help)->required()->type_name("");
}

CLI::Option* add_config_options(CLI::App& command, ConfigOptions& options) {
  CLI::Option* const files =
      command
          .add_option("-c,--config", options.files,
                      "YAML files, or recipes by name (classify); the last one that sets a key wins")
          ->transform(recipe_path)
          ->check(file_problem)
          ->type_name("FILE");
  command.add_option("-s,--set", options.overrides, "set a key; overrides all files: --set train.lr=3e-4 (repeatable)")
      ->type_name("KEY=VALUE");
  return files;
}

void add_set_option(CLI::App& command, std::vector<std::string>& overrides) {
  command.add_option("-s,--set", overrides, "change a key of the run: --set data.test=[other.txt] (repeatable)")
      ->type_name("KEY=VALUE");
}

void add_force_flag(CLI::App& command, bool& force) {
  command.add_flag("--force", force,
                   "train even if the run needs more memory than the machine, its control group or ulimit allows");
}

std::string stray_remedy(const CLI::App& command, const std::string& argument) {
  if (command.get_option_no_throw("--config") == nullptr) return "";
  if (looks_like_override(argument)) return fmt::format("; a value of a key is given with --set {}", argument);
  std::error_code unknown;
  if (const fs::path config = fs::path(argument) / "config.yaml"; fs::exists(config, unknown))
    return fmt::format("; to resume this run: capstan train --config {}", config.string());
  if (recipe_path(argument) == argument && !ends_with(argument, ".yaml") && fs::exists(argument, unknown))
    return fmt::format("; data are given with --set data.train=[{}], after --config", argument);
  return fmt::format("; a configuration is given with --config {}", argument);
}

}  // namespace capstan
