// The commands and options as plain text. The manual page and the completions are written from it,
// so that they agree with --help.
#pragma once

#include <string>
#include <vector>

namespace capstan {

/// An option, or an argument (without names).
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

/// Scripts that a shell sources to complete command lines. `keys`: those that --set accepts.
std::string bash_completion(const CommandText& root, const std::vector<std::string>& keys);
std::string fish_completion(const CommandText& root, const std::vector<std::string>& keys);

}  // namespace capstan
