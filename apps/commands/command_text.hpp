// What the command line offers, as plain text: the manual page and the shells' completions are written from it, so that
// they cannot say anything else than --help does.
#pragma once

#include <string>
#include <vector>

namespace capstan {

/// An option or, where it has no names, an argument known by its place.
struct OptionText {
  std::vector<std::string> names;  // "-c", "--config"
  std::string value;               // what stands behind it: "FILE"; empty for a flag. "[STEPS]" may be left out
  std::string help, default_value;
  bool required = false;
  bool repeats = false;  // takes any number of values
};

struct CommandText {
  std::string name;  // with those it belongs to: "capstan config print"
  std::string help, footer;
  std::vector<OptionText> options, arguments;
  std::vector<CommandText> commands;
};

/// The command itself, then all below it.
std::vector<const CommandText*> all_commands(const CommandText& root);

/// A page for man(1), in the macros of man(7).
std::string man_page(const CommandText& root);

/// Scripts that a shell sources to complete command lines. `keys`: what --set knows.
std::string bash_completion(const CommandText& root, const std::vector<std::string>& keys);
std::string fish_completion(const CommandText& root, const std::vector<std::string>& keys);

}  // namespace capstan
