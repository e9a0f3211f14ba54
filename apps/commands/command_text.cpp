#include "apps/commands/command_text.hpp"

#include <CLI/CLI.hpp>

namespace capstan {
namespace {

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

}  // namespace

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

std::vector<const CommandText*> all_commands(const CommandText& root) {
  std::vector<const CommandText*> all{&root};
  for (const CommandText& command : root.commands)
    for (const CommandText* const below : all_commands(command)) all.push_back(below);
  return all;
}

}  // namespace capstan
