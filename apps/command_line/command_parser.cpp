#include "apps/command_line/command_parser.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <type_traits>

#include "core/base/error.hpp"
#include "core/strings/affixes.hpp"
#include "core/strings/join.hpp"
#include "core/strings/nearest.hpp"
#include "train/records/log.hpp"

namespace capstan {
namespace {

/// Reports what is wrong with the command line. If a command is missing or unknown,
/// CLI11 only says that one is required.
int refuse(CLI::App& root, const CLI::ParseError& error,
           const std::map<const CLI::App*, CommandParser::Remedy>& remedies) {
  CLI::App* app = &root;
  std::string name = root.get_name();
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    name += " " + app->get_name();
  }
  std::vector<std::string> commands;
  for (const CLI::App* command : app->get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(command->get_name());
  const std::vector<std::string> rest = root.remaining(true);
  if (commands.empty() || (!rest.empty() && starts_with(rest.front(), "-"))) {
    const auto remedy = remedies.find(app);
    std::string what = rest.empty() ? error.what() : "unknown option or argument: " + rest.front();
    if (!rest.empty() && remedy != remedies.end())
      if (const std::string meant = remedy->second(rest.front()); !meant.empty()) what += "; " + meant;
    log_error(fmt::format("{}\n{} --help shows the usage", what, name));
  } else if (rest.empty()) {
    std::cerr << root.help();
  } else {
    const std::string meant = nearest(rest.front(), commands);
    log_error(fmt::format("{}: unknown command{}\n{} --help lists the commands", rest.front(),
                          meant.empty() ? "" : fmt::format(", did you mean {}?", meant), name));
  }
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
    char* end = nullptr;  // the number must be all of the text, as the parser that stores it wants it
    const auto number = static_cast<double>(std::strtold(text.c_str(), &end));
    const bool whole = !text.empty() && end == text.c_str() + text.size();
    if (whole && std::isfinite(number) && in_range(limits, number)) return std::string();
    return fmt::format("expected a number ({}), got {}", limits_text(limits), text);
  };
}

CommandText command_text(const CLI::App& app, const std::string& prefix) {
  CommandText text;
  text.name = prefix + app.get_name();
  text.help = app.get_description();
  text.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    OptionText one = option_text(*option);
    if (option->get_positional()) {
      one.value = option->get_type_name().empty() ? option->get_name(true) : option->get_type_name();
      text.arguments.push_back(std::move(one));
    } else {
      text.options.push_back(std::move(one));
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

CommandOption* CommandOption::without_default() {
  option_->default_str("");
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
  try {
    app_->parse(argc, argv);
    return shared_->chosen;
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app_->exit(error) : refuse(*app_, error, shared_->remedies);
  }
}

CommandText CommandParser::text() const { return command_text(*app_, ""); }

}  // namespace capstan
