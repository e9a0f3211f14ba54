// In transition to CLI11 used directly.
#pragma once

#include <deque>

#include "apps/command_line/command.hpp"
#include "apps/command_line/next_commands.hpp"
#include "apps/command_line/options.hpp"
#include "apps/command_line/output.hpp"
#include "apps/command_line/rank_options.hpp"
#include "apps/command_line/recipes.hpp"

namespace capstan {

struct CommandOption {
  CLI::Option* option;
  CommandOption* required() {
    option->required();
    return this;
  }
  CommandOption* repeats() { return this; }
  CommandOption* without_default() {
    option->default_str("");
    return this;
  }
  template <class F>
  CommandOption* replace(const F& f) {
    option->transform(f);
    return this;
  }
  template <class F>
  CommandOption* check(const F& f) {
    option->check(f);
    return this;
  }
};

template <class Options>
struct OldSubcommand {
  class CommandParser& command;
  Options& options;
};

class CommandParser {
 public:
  explicit CommandParser(CLI::App& app) : app_(app) {}
  CLI::App& app_;
  std::deque<CommandOption> options_;

  template <class Options, class Body>
  OldSubcommand<Options> add_subcommand(const std::string& name, const std::string& help, const Body& body) {
    CommandParser& command = *new CommandParser(*app_.add_subcommand(name, help));
    const auto options = std::make_shared<Options>();
    runs(command.app_, [options, body] { return body(*options); });
    return {command, *options};
  }
  template <class T>
  CommandOption* add_option(const std::string& names, T& value, const std::string& help,
                            const std::string& value_name = "") {
    CLI::Option* o = app_.add_option(names, value, help);
    if (!value_name.empty()) o->type_name(value_name);
    return &options_.emplace_back(CommandOption{o});
  }
  CommandOption* add_choice(const std::string& names, std::string& value, const std::vector<std::string>& words,
                            const std::string& help, const std::string& value_name = "") {
    CommandOption* o = add_option(names, value, help, value_name);
    o->option->check(CLI::IsMember(words))->capture_default_str();
    return o;
  }
  template <class T>
  CommandOption* add_number(const std::string& names, T& value, const Constraint& limits, const std::string& help,
                            const std::string& = "") {
    return &options_.emplace_back(CommandOption{capstan::add_number(app_, names, value, limits, help)});
  }
  void add_flag(const std::string& names, bool& value, const std::string& help) { app_.add_flag(names, value, help); }
  void footer(const std::string& text) { app_.footer(text); }
  template <class F>
  void on_stray_argument(const F&) {}
};
inline std::string one_run(const std::string&) { return ""; }
inline CommandOption* add_config_options(CommandParser& c, ConfigOptions& o) {
  return &c.options_.emplace_back(CommandOption{add_config_options(c.app_, o)});
}
inline void add_rank_options(CommandParser& c, RankOptions& o) { add_rank_options(c.app_, o); }
inline void add_force_flag(CommandParser& c, bool& force) { add_force_flag(c.app_, force); }
inline void add_set_option(CommandParser& c, std::vector<std::string>& o) { add_set_option(c.app_, o); }

}  // namespace capstan
