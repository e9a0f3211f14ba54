#include "apps/command_line/command_parser.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

#include "apps/command_line/command.hpp"
#include "core/base/error.hpp"
#include "core/strings/affixes.hpp"
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

CommandOption* CommandOption::type_name(const std::string& name) {
  option_->type_name(name);
  return this;
}

CommandOption* CommandOption::expected(int count) {
  option_->expected(count);
  return this;
}

CommandOption* CommandOption::expected(int least, int most) {
  option_->expected(least, most);
  return this;
}

CommandOption* CommandOption::default_str(const std::string& value) {
  option_->default_str(value);
  return this;
}

CommandOption* CommandOption::capture_default_str() {
  option_->capture_default_str();
  return this;
}

CommandOption* CommandOption::check(const std::function<std::string(const std::string&)>& problem) {
  option_->check(problem);
  return this;
}

CommandOption* CommandOption::one_of(const std::vector<std::string>& values) {
  option_->check(CLI::IsMember(values));
  return this;
}

CommandParser::CommandParser(const std::string& help, const std::string& name)
    : app_(std::make_shared<CLI::App>(help, name)) {}

CommandParser* CommandParser::add_subcommand(const std::string& name, const std::string& help) {
  subcommands_.push_back(CommandParser({app_, app_->add_subcommand(name, help)}, remedies_));
  return &subcommands_.back();
}

void CommandParser::require_subcommand(int count) { app_->require_subcommand(count); }

template <class T>
CommandOption* CommandParser::add(const std::string& names, T& value, const std::string& help) {
  return &options_.emplace_back(app_->add_option(names, value, help));
}

CommandOption* CommandParser::add_option(const std::string& names, std::string& value, const std::string& help) {
  return add(names, value, help);
}

CommandOption* CommandParser::add_option(const std::string& names, std::vector<std::string>& value,
                                         const std::string& help) {
  return add(names, value, help);
}

CommandOption* CommandParser::add_option(const std::string& names, std::int64_t& value, const std::string& help) {
  return add(names, value, help);
}

CommandOption* CommandParser::add_option(const std::string& names, double& value, const std::string& help) {
  return add(names, value, help);
}

CommandOption* CommandParser::add_flag(const std::string& names, bool& value, const std::string& help) {
  return &options_.emplace_back(app_->add_flag(names, value, help));
}

void CommandParser::set_version_flag(const std::string& name, const std::string& version, const std::string& help) {
  app_->set_version_flag(name, version, help);
}

void CommandParser::footer(const std::string& text) { app_->footer(text); }

void CommandParser::on_stray_argument(const Remedy& remedy) { (*remedies_)[app_.get()] = remedy; }

void CommandParser::callback(const std::function<void()>& chosen) { app_->callback(chosen); }

std::optional<int> CommandParser::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app_->exit(error) : refuse(*app_, error, *remedies_);
  }
}

CommandText CommandParser::text() const { return command_text(*app_, ""); }

}  // namespace capstan
