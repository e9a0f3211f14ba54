// The command line of the program: commands, options and their texts, by which each file of apps/commands adds itself.
// Only command_parser.cpp includes CLI11, which would add 6 s to the compilation of every source.
// tests/cli/runs/test_commands.cpp and test_bad_input.cpp hold help and errors, test_documents.sh the pages made of the
// texts.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "apps/command_line/command.hpp"
#include "core/config/schema.hpp"

namespace capstan {

// The commands and options as plain text. The manual page and the completions are written from it,
// so that they agree with --help.

/// An option, or an argument, which has no names.
struct OptionText {
  std::vector<std::string> names;  // "-c", "--config"
  std::string value;               // "FILE"; empty for a flag; "[STEPS]": optional
  std::string help, default_value;
  bool required = false;
  bool repeats = false;  // takes any number of values
};

struct CommandText {
  std::string name;  // with its parents: "capstan config print"
  std::string help, footer;
  std::vector<OptionText> options, arguments;
  std::vector<CommandText> commands;
};

/// The command itself, then all below it.
std::vector<const CommandText*> all_commands(const CommandText& root);

/// A page for man(1), in the macros of man(7).
std::string man_page(const CommandText& root);

/// A script that Bash sources to complete command lines. `keys`: those that --set accepts.
std::string bash_completion(const CommandText& root, const std::vector<std::string>& keys);

}  // namespace capstan

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace capstan {

/// An option of a command or, if its name has no dash, an argument known by its position. Every function returns
/// `this`.
class CommandOption {
 public:
  explicit CommandOption(CLI::Option* option) : option_(option) {}

  CommandOption* required();
  /// The option takes any number of values.
  CommandOption* repeats();
  /// Takes any number of values, each after the name of the option.
  CommandOption* one_each();
  /// Without a value, the option has this one.
  CommandOption* optional_value(const std::string& value);
  /// --help shows no default, since it says what a command does without the option.
  CommandOption* without_default();
  /// The value becomes what `replacement` returns for it, before it is checked.
  CommandOption* replace(const std::function<std::string(const std::string&)>& replacement);
  /// `problem` returns what is wrong with a value; empty if nothing is.
  CommandOption* check(const std::function<std::string(const std::string&)>& problem);

 private:
  CLI::Option* option_;
};

template <class Options>
struct Subcommand;

/// The program or one of its subcommands. What the functions return lives as long as the parser they were called on;
/// variables must live until the command has run.
class CommandParser {
 public:
  CommandParser(const std::string& help, const std::string& name);

  CommandParser* add_subcommand(const std::string& name, const std::string& help);
  /// A command with its own options, which `body` takes.
  template <class Options, class Body>
  Subcommand<Options> add_subcommand(const std::string& name, const std::string& help, const Body& body);
  void require_subcommand();
  /// Calls `change` for each command below this one that has no subcommands.
  void for_each_command(const std::function<void(CommandParser& command)>& change);
  /// What the command does. `parse()` returns it if the command line names this command.
  void does(const Command& body);

  /// `value_name`: what --help shows for the value, such as FILE.
  CommandOption* add_option(const std::string& names, std::string& value, const std::string& help,
                            const std::string& value_name = "");
  CommandOption* add_option(const std::string& names, std::vector<std::string>& value, const std::string& help,
                            const std::string& value_name = "");
  /// An option with one of these words; --help shows the present value as the default.
  CommandOption* add_choice(const std::string& names, std::string& value, const std::vector<std::string>& words,
                            const std::string& help, const std::string& value_name = "");
  CommandOption* add_number(const std::string& names, std::int64_t& value, const Constraint& limits,
                            const std::string& help, const std::string& value_name = "");
  CommandOption* add_number(const std::string& names, double& value, const Constraint& limits, const std::string& help,
                            const std::string& value_name = "");
  void add_flag(const std::string& names, bool& value, const std::string& help);
  void set_version_flag(const std::string& name, const std::string& version, const std::string& help);
  void footer(const std::string& text);
  /// For an argument that the command does not take: `remedy` returns what was probably meant; empty if nothing is
  /// known.
  using Remedy = std::function<std::string(const std::string& argument)>;
  void on_stray_argument(const Remedy& remedy);

  /// The command that the line names (`help COMMAND` and `version` are --help and --version), or an exit code if the
  /// program ends here: --help was asked for, or the line is wrong and a message is on stderr.
  std::variant<Command, int> parse(int argc, char** argv);

  /// This command and everything below it, in the order of --help.
  CommandText text() const;

 private:
  struct Shared {
    std::map<const CLI::App*, Remedy> remedies;
    Command chosen;
  };
  CommandParser(std::shared_ptr<CLI::App> app, std::shared_ptr<Shared> shared)
      : app_(std::move(app)), shared_(std::move(shared)) {}
  template <class T>
  CommandOption* add(const std::string& names, T& value, const std::string& help, const std::string& value_name);

  std::shared_ptr<CLI::App> app_;                                // a subcommand shares the ownership of the whole
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();  // of the program and all its commands
  std::deque<CommandParser> subcommands_;                        // deques: pointers to elements stay valid
  std::deque<CommandOption> options_;
};

/// A new command and the struct that its options fill. Both live as long as the parser.
template <class Options>
struct Subcommand {
  CommandParser& command;
  Options& options;
};

template <class Options, class Body>
Subcommand<Options> CommandParser::add_subcommand(const std::string& name, const std::string& help, const Body& body) {
  CommandParser& command = *add_subcommand(name, help);
  const auto options = std::make_shared<Options>();
  command.does([options, body] { return body(*options); });
  return {command, *options};
}

}  // namespace capstan
