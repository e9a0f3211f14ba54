// CLI11 parses; errors are described here, from what it has left over, because its own messages do not say what was
// probably meant. Texts for the manual page and for completion are read back from CLI11, so that they cannot differ
// from --help. tests/cli/runs/test_commands.cpp.
#include "apps/command_line/command_parser.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <sstream>
#include <type_traits>

#include <CLI/CLI.hpp>

#include "core/base/error.hpp"
#include "core/io/log.hpp"
#include "core/strings/nearest.hpp"
#include "core/strings/strings.hpp"

namespace capstan {

std::vector<const CommandText*> all_commands(const CommandText& root) {
  std::vector<const CommandText*> commands{&root};
  for (const CommandText& command : root.commands)
    for (const CommandText* const below : all_commands(command)) commands.push_back(below);
  return commands;
}

namespace {

bool is_option(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

/// An example from the end of a command's help: the first one with `word`, or the first of all; empty if there is none.
std::string example_of(const CLI::App& app, const std::string& word) {
  const std::string heading = "For example:  ", of_all = "Begin with:   ", footer = app.get_footer();
  const size_t start = std::min(footer.find(heading), footer.find(of_all));
  if (start == std::string::npos) return "";
  std::istringstream lines(footer.substr(start));
  std::string first;
  for (std::string line; std::getline(lines, line);) {
    line.erase(0, heading.size());
    if (first.empty()) first = line;
    if (!word.empty() && line.find(word) != std::string::npos) return line;
  }
  return first;
}

/// A word of a command line that no command, option or argument takes.
struct Stray {
  std::string problem;
  std::string nearest;  // the command or option that was probably meant; empty if there is none
};

/// What is wrong with the words that were left over. `remedy`: what the command knows of arguments that it does not
/// take.
Stray stray_word(const CLI::App& app, const std::vector<std::string>& words, const CommandParser::Remedy& remedy) {
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    known.push_back(command->get_name());
  if (!known.empty() && app.get_parent() == nullptr) known.insert(known.end(), {"help", "version"});
  if (!known.empty() && !is_option(words.front()))
    return {words.front() + ": unknown command", nearest(words.front(), known)};
  known.clear();
  // The value of a misspelt option is left over, too, so an option among the words is looked for first.
  const auto option = std::find_if(words.begin(), words.end(), is_option);
  if (option != words.end()) {
    const std::string name = option->substr(0, option->find('='));
    for (const CLI::Option* existing : app.get_options())
      for (const std::string& long_name : existing->get_lnames()) known.push_back("--" + long_name);
    const bool is_key = name.find('.') != std::string::npos && app.get_option_no_throw("--set") != nullptr;
    return {fmt::format(
                "{}: unknown option{}", *option,
                is_key ? fmt::format("; a key is given with --set {}=VALUE", name.substr(name.rfind("--") + 2)) : ""),
            is_key ? "" : nearest(name, known)};
  }
  const std::string meant = remedy ? remedy(words.front()) : "";
  return {fmt::format("{}: unknown argument{}", words.front(), meant.empty() ? "" : "; " + meant), ""};
}

/// "RUN is required", for an argument whose name in the source is not that of the help.
std::optional<std::string> missing_argument(const CLI::App& app, const CLI::ParseError& error) {
  for (const CLI::Option* option : app.get_options())
    if (error.get_name() == "RequiredError" && option->get_positional() && option->get_required() &&
        option->count() == 0)
      return (option->get_type_name().empty() ? option->get_name(true) : option->get_type_name()) + " is required";
  return std::nullopt;
}

/// Logs what is wrong, what was probably meant, an example, and where to read on; returns the exit code. CLI11 itself
/// says only that something is required or was not expected.
int refuse(CLI::App& root, const CLI::ParseError& error,
           const std::map<const CLI::App*, CommandParser::Remedy>& remedies) {
  const CLI::App* app = &root;
  std::string name = root.get_name();
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    name += " " + app->get_name();
  }
  const bool has_commands = !app->get_subcommands([](const CLI::App*) { return true; }).empty();
  const std::vector<std::string> rest = root.remaining(true);
  if (rest.empty() && has_commands) {
    std::cerr << root.help();
    return exit_wrong_usage;
  }
  const auto remedy = remedies.find(app);
  const Stray stray = rest.empty()
                          ? Stray{missing_argument(*app, error).value_or(error.what()), ""}
                          : stray_word(*app, rest, remedy != remedies.end() ? remedy->second : CommandParser::Remedy());
  std::string message = stray.problem;
  if (!stray.nearest.empty()) message += fmt::format(", did you mean {}?", stray.nearest);
  const std::vector<const CLI::App*> meant =
      app->get_subcommands([&](const CLI::App* candidate) { return candidate->get_name() == stray.nearest; });
  const CLI::App* const command = meant.empty() ? app : meant.front();
  const bool is_word = meant.empty() && !is_option(stray.nearest);  // help and version are in no example
  if (const std::string example = example_of(*command, is_word ? "" : stray.nearest); !example.empty())
    message += "\nfor example: " + example;
  log_error(fmt::format("{}\n{} --help {}", message, name, has_commands ? "lists the commands" : "shows the usage"));
  return exit_wrong_usage;
}

OptionText option_text(const CLI::Option& option) {
  OptionText text;
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  text.help = option.get_description();
  text.default_value = option.get_default_str();
  text.required = option.get_required();
  if (option.get_items_expected_max() == 0) return text;
  text.value = option.get_type_name();
  text.repeats = option.get_items_expected_max() > 1;
  return text;
}

/// What is wrong with a number; nothing if it is within the limits.
std::function<std::string(const std::string&)> number_check(const Constraint& limits) {
  return [limits](const std::string& text) {
    char* end = nullptr;  // must be the end of the text: CLI11 stores a number only if it is all of the text
    const auto number = static_cast<double>(std::strtold(text.c_str(), &end));
    const bool whole = !text.empty() && end == text.c_str() + text.size();
    if (whole && std::isfinite(number) && in_range(limits, number)) return std::string();
    return fmt::format("expected a number ({}), got {}", limits_text(limits), text);
  };
}

/// The texts of a command and all below it, as CLI11 has them. `prefix`: the names of its parents.
CommandText command_text(const CLI::App& app, const std::string& prefix) {
  CommandText text;
  text.name = prefix + app.get_name();
  text.help = app.get_description();
  text.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    OptionText added = option_text(*option);
    if (option->get_positional()) {
      added.value = option->get_type_name().empty() ? option->get_name(true) : option->get_type_name();
      text.arguments.push_back(std::move(added));
    } else {
      text.options.push_back(std::move(added));
    }
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    text.commands.push_back(command_text(*command, text.name + " "));
  return text;
}

}  // namespace

CommandOption* CommandOption::required() {
  option_->required();
  return this;
}

CommandOption* CommandOption::repeats() {
  option_->expected(-1);
  return this;
}

CommandOption* CommandOption::optional_value(const std::string& value) {
  option_->expected(0, 1)->default_str(value);
  return this;
}

CommandOption* CommandOption::one_each() {
  option_->expected(-1)->allow_extra_args(false);
  return this;
}

CommandOption* CommandOption::without_default() {
  option_->default_str("");
  return this;
}

CommandOption* CommandOption::replace(const std::function<std::string(const std::string&)>& replacement) {
  option_->transform(replacement);
  return this;
}

CommandOption* CommandOption::check(const std::function<std::string(const std::string&)>& problem) {
  option_->check(problem);
  return this;
}

CommandParser::CommandParser(const std::string& help, const std::string& name)
    : app_(std::make_shared<CLI::App>(help, name)) {}

CommandParser* CommandParser::add_subcommand(const std::string& name, const std::string& help) {
  subcommands_.push_back(CommandParser({app_, app_->add_subcommand(name, help)}, shared_));
  return &subcommands_.back();
}

void CommandParser::require_subcommand() { app_->require_subcommand(1); }

void CommandParser::for_each_command(const std::function<void(CommandParser& command)>& change) {
  for (CommandParser& command : subcommands_) {
    if (command.subcommands_.empty())
      change(command);
    else
      command.for_each_command(change);
  }
}

void CommandParser::does(const Command& body) {
  app_->callback([shared = shared_, body] { shared->chosen = body; });
}

template <class T>
CommandOption* CommandParser::add(const std::string& names, T& value, const std::string& help,
                                  const std::string& value_name) {
  CLI::Option* const option = app_->add_option(names, value, help);
  if (!value_name.empty()) option->type_name(value_name);
  if constexpr (std::is_arithmetic_v<T>) option->capture_default_str();
  if constexpr (std::is_same_v<T, std::string>)
    if (!value.empty()) option->capture_default_str();
  return &options_.emplace_back(option);
}

CommandOption* CommandParser::add_option(const std::string& names, std::string& value, const std::string& help,
                                         const std::string& value_name) {
  return add(names, value, help, value_name);
}

CommandOption* CommandParser::add_option(const std::string& names, std::vector<std::string>& value,
                                         const std::string& help, const std::string& value_name) {
  return add(names, value, help, value_name);
}

CommandOption* CommandParser::add_choice(const std::string& names, std::string& value,
                                         const std::vector<std::string>& words, const std::string& help,
                                         const std::string& value_name) {
  return add(names, value, help, value_name)->check([words](const std::string& word) {
    const bool known = std::find(words.begin(), words.end(), word) != words.end();
    return known ? "" : fmt::format("{} is not one of {}", word, join(words));
  });
}

CommandOption* CommandParser::add_number(const std::string& names, std::int64_t& value, const Constraint& limits,
                                         const std::string& help, const std::string& value_name) {
  return add(names, value, help, value_name)->check(number_check(limits));
}

CommandOption* CommandParser::add_number(const std::string& names, double& value, const Constraint& limits,
                                         const std::string& help, const std::string& value_name) {
  return add(names, value, help, value_name)->check(number_check(limits));
}

void CommandParser::add_flag(const std::string& names, bool& value, const std::string& help) {
  app_->add_flag(names, value, help);
}

void CommandParser::set_version_flag(const std::string& name, const std::string& version, const std::string& help) {
  app_->set_version_flag(name, version, help);
}

void CommandParser::footer(const std::string& text) { app_->footer(text); }

void CommandParser::on_stray_argument(const Remedy& remedy) { shared_->remedies[app_.get()] = remedy; }

std::variant<Command, int> CommandParser::parse(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  } else if (!words.empty() && words.front() == "version") {
    if (words.size() > 1) {
      log_error(words[1] + ": unknown argument; capstan version takes none");
      return exit_wrong_usage;
    }
    words.front() = "--version";
  }
  std::reverse(words.begin(), words.end());  // CLI11 takes words from the end of the vector
  try {
    app_->parse(std::move(words));
    return shared_->chosen;
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == 0;  // --help, --version
    const bool unknown_command = app_->get_subcommands().empty() && !app_->remaining().empty();
    return asked && !unknown_command ? app_->exit(error) : refuse(*app_, error, shared_->remedies);
  }
}

CommandText CommandParser::text() const { return command_text(*app_, ""); }

}  // namespace capstan
