// The part of CLI11 that the commands use, under CLI11's names. Only command_parser.cpp includes CLI11, which would add 6 s to
// the compilation of every source.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/command_line/command_text.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace capstan {

/// An option of a command or, if its name has no dash, an argument known by its position. Every function returns `this`.
class CommandOption {
 public:
  explicit CommandOption(CLI::Option* option) : option_(option) {}

  CommandOption* required();
  /// What --help shows for the value: FILE.
  CommandOption* type_name(const std::string& name);
  /// How many values it takes; -1 for any number.
  CommandOption* expected(int count);
  CommandOption* expected(int least, int most);
  /// The value used if the option is given without one.
  CommandOption* default_str(const std::string& value);
  /// --help shows the variable's present value as the default.
  CommandOption* capture_default_str();
  /// `problem` returns what is wrong with a value; empty if nothing is.
  CommandOption* check(const std::function<std::string(const std::string&)>& problem);
  /// Only these values are allowed.
  CommandOption* one_of(const std::vector<std::string>& values);

 private:
  CLI::Option* option_;
};

/// The command line of the program, or one of its subcommands. What add_subcommand() and add_option() return lives as long as
/// the parser they were called on; variables must live until parse() returns.
class CommandParser {
 public:
  CommandParser(const std::string& help, const std::string& name);

  CommandParser* add_subcommand(const std::string& name, const std::string& help);
  void require_subcommand(int count);
  CommandOption* add_option(const std::string& names, std::string& value, const std::string& help);
  CommandOption* add_option(const std::string& names, std::vector<std::string>& value, const std::string& help);
  CommandOption* add_option(const std::string& names, std::int64_t& value, const std::string& help);
  CommandOption* add_option(const std::string& names, double& value, const std::string& help);
  CommandOption* add_flag(const std::string& names, bool& value, const std::string& help);
  void set_version_flag(const std::string& name, const std::string& version, const std::string& help);
  void footer(const std::string& text);
  /// For an argument that the command does not take: `remedy` returns what was probably meant; empty if nothing is known.
  using Remedy = std::function<std::string(const std::string& argument)>;
  void on_stray_argument(const Remedy& remedy);
  /// Called by parse() if the command line names this command.
  void callback(const std::function<void()>& chosen);

  /// Returns an exit code if the program ends here: --help was asked for, or the line is wrong and a message is on stderr.
  std::optional<int> parse(int argc, char** argv);

  /// This command and everything below it, in the order of --help.
  CommandText text() const;

 private:
  using Remedies = std::map<const CLI::App*, Remedy>;
  CommandParser(std::shared_ptr<CLI::App> app, std::shared_ptr<Remedies> remedies)
      : app_(std::move(app)), remedies_(std::move(remedies)) {}
  template <class T>
  CommandOption* add(const std::string& names, T& value, const std::string& help);

  std::shared_ptr<CLI::App> app_;                                      // a subcommand shares the ownership of the whole
  std::shared_ptr<Remedies> remedies_ = std::make_shared<Remedies>();  // of all commands
  std::deque<CommandParser> subcommands_;
  std::deque<CommandOption> options_;
};

}  // namespace capstan
