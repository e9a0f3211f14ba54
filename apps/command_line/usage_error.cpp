// Describes what CLI11 could not parse from the words that it has left over: its own message does not say what was
// probably meant. tests/cli/inputs/test_bad_input.cpp.
#include "apps/command_line/usage_error.hpp"

#include <algorithm>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "apps/command_line/options.hpp"
#include "core/io/log.hpp"
#include "core/strings/nearest.hpp"

namespace capstan {
namespace {

bool is_option(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

std::vector<std::string> command_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* below : command.get_subcommands({})) names.push_back(below->get_name());
  if (!names.empty() && command.get_parent() == nullptr) names.insert(names.end(), {"help", "version"});
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// An example from the end of a command's help: the first one with `word`, or the first of all; empty if there is none.
std::string example_of(const CLI::App& command, const std::string& word) {
  const std::string heading = "For example:  ", of_all = "Begin with:   ", footer = command.get_footer();
  const size_t start = std::min(footer.find(heading), footer.find(of_all));
  if (start == std::string::npos) return "";
  std::istringstream lines(footer.substr(start));
  std::string first;
  for (std::string line; std::getline(lines, line);) {
    line.erase(0, heading.size());
    if (first.empty()) first = line;
    if (line.find(word) != std::string::npos) return line;
  }
  return first;
}

struct UsageProblem {
  std::string text;
  std::string nearest;  // the command or option that was probably meant; empty if none is near
};

/// What is wrong with the words that no command, option or argument takes.
UsageProblem stray_words(const CLI::App& command, const std::vector<std::string>& words) {
  if (const std::vector<std::string> names = command_names(command); !names.empty() && !is_option(words.front()))
    return {words.front() + ": unknown command", nearest(words.front(), names)};
  // The value of a misspelt option is left over, too, so an option among the words is looked for first.
  const auto option = std::find_if(words.begin(), words.end(), is_option);
  if (option == words.end())
    return {fmt::format("{}: unknown argument{}", words.front(), stray_remedy(command, words.front())), ""};
  const std::string name = option->substr(0, option->find('='));
  if (name.find('.') == std::string::npos || command.get_option_no_throw("--set") == nullptr)
    return {*option + ": unknown option", nearest(name, option_names(command))};
  return {fmt::format("{}: unknown option; a key is given with --set {}=VALUE", *option, name.substr(2)), ""};
}

}  // namespace

int refuse_usage(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App* command = &program;
  std::string line = program.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    line += " " + command->get_name();
  }
  const std::vector<std::string> rest = program.remaining(true), names = command_names(*command);
  if (rest.empty() && !names.empty()) {
    std::cerr << program.help();
    return exit_wrong_usage;
  }
  const UsageProblem problem = rest.empty() ? UsageProblem{error.what(), ""} : stray_words(*command, rest);
  std::string message = problem.text;
  if (!problem.nearest.empty()) message += fmt::format(", did you mean {}?", problem.nearest);
  const auto meant =
      command->get_subcommands([&](const CLI::App* below) { return below->check_name(problem.nearest); });
  const std::string example = meant.empty() ? example_of(*command, problem.nearest) : example_of(*meant.front(), "");
  if (!example.empty()) message += "\nfor example: " + example;
  log_error(fmt::format("{}\n{} --help {}", message, line, names.empty() ? "shows the usage" : "lists the commands"));
  return exit_wrong_usage;
}

}  // namespace capstan
