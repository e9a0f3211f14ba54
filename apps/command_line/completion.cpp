// bash_completion() of command_parser.hpp: a fixed function of Bash finds the command and the option at the cursor, and
// a `case` that is written from the texts of all commands says what can come there. tests/cli/test_pages.sh runs it.
#include <fmt/core.h>

#include "apps/command_line/command_parser.hpp"
#include "core/strings/strings.hpp"

namespace capstan {
namespace {

/// What the words are that complete a value.
enum class Words { none, files, folders, keys, choices };

/// The kind of an option's value, by its name in --help: FILE, FOLDER, RUN, KEY=VALUE, or "tsv|jsonl".
Words words_of(const OptionText& option) {
  const auto holds = [&option](const char* text) { return option.value.find(text) != std::string::npos; };
  if (holds("FILE")) return Words::files;
  if (holds("FOLDER") || holds("RUN")) return Words::folders;
  if (holds("KEY")) return Words::keys;
  return holds("|") ? Words::choices : Words::none;
}

/// "tsv|jsonl" -> "tsv jsonl".
std::string choices_of(std::string value) {
  for (char& c : value)
    if (c == '|') c = ' ';
  return value;
}

/// The names of the direct subcommands.
std::vector<std::string> names_below(const CommandText& command) {
  std::vector<std::string> names;
  for (const CommandText& below : command.commands) names.push_back(below.name.substr(command.name.size() + 1));
  return names;
}

/// Completion of an option's value or an argument, in Bash.
std::string bash_words(const OptionText& option) {
  switch (words_of(option)) {
    case Words::files:
      return "kind=files";
    case Words::folders:
      return "kind=folders";
    case Words::keys:
      return "kind=keys";
    case Words::choices:
      return fmt::format("kind=words words='{}'", choices_of(option.value));
    case Words::none:
      break;
  }
  return "kind=none";
}

/// The part of the script for one command.
std::string bash_case(const CommandText& command) {
  std::vector<std::string> options;
  std::string cases, place = "kind=none";
  for (const OptionText& option : command.options) {
    options.insert(options.end(), option.names.begin(), option.names.end());
    if (!option.value.empty())
      cases += fmt::format("        {}) {} takes={} ;;\n", join(option.names, "|"), bash_words(option),
                           option.repeats ? "many" : "one");
  }
  // All arguments of a command share one kind. Where one is a file, that is files, which offers folders, too.
  for (const OptionText& argument : command.arguments)
    if (place != "kind=files") place = bash_words(argument);
  const std::string commands = join(names_below(command), " ");
  if (!commands.empty()) place = fmt::format("kind=words words='{}'", commands);
  return fmt::format(
      "    '{}')\n"
      "      options='{}' commands=' {} '\n"
      "      case $2 in\n"
      "{}"
      "        '') {} ;;\n"
      "      esac\n"
      "      ;;\n",
      command.name, join(options, " "), commands, cases, place);
}

constexpr const char* bash_end = R"(
_capstan() {
  local cur=${COMP_WORDS[COMP_CWORD]} command=capstan option= word
  local options commands kind words takes
  # The command on the line, and the option whose value the cursor is at. Bash splits words at "=".
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    _capstan_at "$command" "$option"
    if [[ $word == '=' ]]; then
      continue
    elif [[ $word == -* ]]; then
      option=$word
      _capstan_at "$command" "$option"
      if [[ $takes == none ]]; then option=; fi
    elif [[ -n $option ]]; then
      if [[ $takes == one ]]; then option=; fi
    elif [[ $commands == *" $word "* ]]; then
      command+=" $word"
    fi
  done
  _capstan_at "$command" "$option"
  if [[ $kind == keys && ($cur == '=' || $word == '=') ]]; then return; fi # a key's value
  if [[ $cur == '=' ]]; then cur=; fi
  if [[ $cur == -* ]]; then kind=words words=$options; fi
  case $kind in
    words) COMPREPLY=($(compgen -W "$words" -- "$cur")) ;;
    keys)
      compopt -o nospace 2>/dev/null
      COMPREPLY=($(compgen -S = -W "$_capstan_keys" -- "$cur"))
      ;;
    files | folders)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(if [[ $kind == files ]]; then compgen -f -- "$cur"; else compgen -d -- "$cur"; fi)
      ;;
  esac
}
complete -F _capstan capstan
)";

}  // namespace

std::string bash_completion(const CommandText& root, const std::vector<std::string>& keys) {
  std::string out = "# Completion of capstan for Bash; written by `capstan completion bash`.\n\n";
  out += "_capstan_keys='" + join(keys, " ") + "'\n\n";
  out +=
      "# _capstan_at COMMAND OPTION: sets the options of the command, and the words that complete the value of the\n"
      "# option (or an argument, if there is no option)\n"
      "_capstan_at() {\n  options= commands= kind=none words= takes=none\n  case $1 in\n";
  for (const CommandText* const command : all_commands(root)) out += bash_case(*command);
  return out + "  esac\n}\n" + bash_end;
}

}  // namespace capstan
