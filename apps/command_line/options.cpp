// Adds the options that several subcommands share, and finds recipes by name. tests/cli/inputs/test_bad_input.cpp and
// test_ranks.cpp.
#include "apps/command_line/options.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "apps/command_line/command.hpp"
#include "apps/command_line/command_parser.hpp"
#include "core/base/error.hpp"
#include "core/io/log.hpp"
#include "core/strings/nearest.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/saved_config.hpp"

namespace capstan {

namespace fs = std::filesystem;

namespace {

/// Is a text like "train.lr=1e-3" and not the path of a file?
bool looks_like_override(const std::string& text) {
  std::error_code unknown;
  return text.substr(0, text.find('/')).find('=') != std::string::npos && !fs::exists(text, unknown);
}

/// The command that resumes a run. Where the run was moved, its configuration names the old place, and --set the new
/// one.
std::string resume_command(const fs::path& run) {
  std::string command = "capstan train --config " + (run / "config.yaml").string();
  try {
    const RunConfig saved = load_run_config(run);
    std::error_code unknown;
    const fs::path path = fs::canonical(run, unknown);
    if (!fs::equivalent(path, folder_of(saved), unknown))
      command += fmt::format(" --set folder={} name={}", path.parent_path().string(), path.filename().string());
  } catch (const Error&) {  // that command will say what is wrong with the configuration
  }
  return command;
}

/// What an argument that no command takes was probably meant for: a value, a run, data or a configuration.
std::string remedy_for(const std::string& argument) {
  if (looks_like_override(argument)) return fmt::format("a value of a key is given with --set {}", argument);
  std::error_code unknown;
  if (const auto folder = fs::path(argument); fs::exists(folder / "config.yaml", unknown))
    return "to resume this run: " + resume_command(folder);
  if (recipe_path(argument) == argument && !ends_with(argument, ".yaml") && fs::exists(argument, unknown))
    return fmt::format("data are given with --set data.train=[{}], after --config", argument);
  return fmt::format("a configuration is given with --config {}", argument);
}

/// Where recipes may be, in the order in which they are looked for: the working folder, the program, its sources.
std::vector<fs::path> recipe_folders() {
  std::error_code unknown;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown).parent_path();
  return {"configs", program / CAPSTAN_RECIPES, program / "../../configs"};  // the last one: from build/<preset>
}

/// The recipe that was probably meant: listops means "compare/listops". Empty if none is near.
std::string nearest_recipe(const std::string& file) {
  const std::vector<std::string> names = recipe_names();
  const std::string stem = fs::path(file).stem().string();
  const auto below = std::find_if(names.begin(), names.end(), [&](const auto& n) { return ends_with(n, "/" + stem); });
  return below != names.end() ? *below : nearest(stem, names);
}

/// What is wrong with a file for --config; empty if nothing is.
std::string file_problem(const std::string& file) {
  if (looks_like_override(file)) return fmt::format("{} is no file; {}", file, remedy_for(file));
  std::error_code unknown;
  for (const char* const table : {".csv", ".tsv", ".jsonl"})
    if (ends_with(file, table))
      return fmt::format("{0} is not a YAML configuration; data are given with --set data.train=[{0}]", file);
  if (fs::exists(file, unknown)) return "";  // the file's reader reports errors
  if (const std::string recipe = nearest_recipe(file); !recipe.empty())
    return fmt::format("{}: no such file and no such recipe, did you mean {}?", file, recipe);
  if (file.find('.') != std::string::npos) return "";  // no name of a recipe
  for (const fs::path& folder : recipe_folders())
    if (fs::is_directory(folder, unknown))
      return fmt::format("{}: no such file and no such recipe; the recipes are the files of {}", file,
                         folder.lexically_normal().string());
  return fmt::format("{}: no such file, and no folder of recipes is beside this program; give the path of a file",
                     file);
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

void add_weights_option(CommandParser& command, std::string& name, const std::string& help) {
  std::vector<std::string> names;
  for (const auto& known : enum_names(DecodeWeights{})) names.emplace_back(known.name);
  command.add_choice("--weights", name, names, help);
}

DecodeWeights weights_named(const std::string& name) {
  if (const auto weights = enum_value<DecodeWeights>(name)) return *weights;
  throw ConfigError(fmt::format("--weights: {} is not a number format for weights", name));
}

std::string one_run(const std::string&) { return "this command takes one run; capstan compare takes several"; }

namespace {

/// May a text be the name of a recipe? Such a name cannot lead out of the folders of recipes.
bool names_recipe(const std::string& name) {
  return !name.empty() && name.front() != '/' && name.front() != '.' && name.find("/.") == std::string::npos;
}

}  // namespace

std::string recipe_path(const std::string& name) {
  std::error_code unknown;
  if (!names_recipe(name) || (fs::exists(name, unknown) && !fs::is_directory(name, unknown))) return name;
  if (fs::is_regular_file(name + ".yaml", unknown)) return name + ".yaml";
  std::string recipe = name.substr(starts_with(name, "configs/") ? 8 : 0);
  if (!ends_with(recipe, ".yaml")) recipe += ".yaml";
  for (const fs::path& folder : recipe_folders())
    if (const fs::path path = folder / recipe; fs::is_regular_file(path, unknown))
      return path.lexically_normal().string();
  return name;
}

std::vector<std::string> recipe_names() {
  std::set<std::string> names;
  std::error_code unknown;
  for (const fs::path& folder : recipe_folders())
    for (const auto& entry :
         fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, unknown))
      if (entry.path().extension() == ".yaml")
        names.insert(entry.path().lexically_relative(folder).replace_extension().string());
  return {names.begin(), names.end()};
}

void add_rank_options(CommandParser& command, RankOptions& options) {
  command.add_flag("--mpi", options.mpi,
                   "run as one of several processes by MPI; without it, when started by mpirun or srun");
  command.add_number("--rank-timeout", options.timeout, between(1, 1e6),
                     "with several processes: seconds without a message after which another process counts as lost; "
                     "ten times the longest step if that is more",
                     "SECONDS");
}

void refuse_ranks(const std::string& command) {
  if (const auto launch = find_launch(); launch && launch->processes > 1)
    throw ConfigError(fmt::format("{} does not share out its work: start it once, not as {} processes ({})", command,
                                  launch->processes, launch->told_by));
}

int run_on_ranks(const RankOptions& options, const std::function<int(Communicator& ranks)>& body) {
  const std::unique_ptr<Communicator> ranks = open_ranks(options);
  if (ranks->size() == 1) return body(*ranks);
  if (!ranks->first())
    set_log_sink([name = ranks->name_of(ranks->rank())](LogLevel level, std::string_view message) {
      if (level == LogLevel::error) log_to_stderr(level, fmt::format("{}: {}", name, message));
    });
  const int code = run_command([&] { return body(*ranks); },
                               [&] {
                                 // Of an error that all ranks have, only the lowest rank's message is to be seen: it
                                 // waits least, and ends the others when it has written.
                                 const auto turn = std::chrono::milliseconds(std::min(300 * ranks->rank(), 3000));
                                 std::this_thread::sleep_for(turn);
                               });
  if (code != exit_done && code != exit_interrupted) ranks->abort(code);
  return code;
}

}  // namespace capstan
