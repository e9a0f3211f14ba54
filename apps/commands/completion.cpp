#include <fmt/format.h>

#include "apps/commands/command_text.hpp"

namespace capstan {
namespace {

enum class Words { none, files, folders, keys, choices };

/// What stands behind an option, by its name in --help: FILE, FOLDER, RUN, KEY=VALUE, or "tsv|jsonl".
Words words_of(const OptionText& option) {
  const auto holds = [&option](const char* text) { return option.value.find(text) != std::string::npos; };
  if (holds("FILE")) return Words::files;
  if (holds("FOLDER") || holds("RUN")) return Words::folders;
  if (holds("KEY")) return Words::keys;
  return holds("|") ? Words::choices : Words::none;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : between) + word;
  return out;
}

/// "tsv|jsonl" -> "tsv jsonl".
std::string choices_of(std::string value) {
  for (char& c : value)
    if (c == '|') c = ' ';
  return value;
}

/// The names of the commands right below.
std::vector<std::string> names_below(const CommandText& command) {
  std::vector<std::string> names;
  for (const CommandText& below : command.commands) names.push_back(below.name.substr(command.name.size() + 1));
  return names;
}

/// What completes an option's value or an argument, in Bash.
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

/// What the script knows of one command.
std::string bash_case(const CommandText& command) {
  std::vector<std::string> options;
  std::string behind, place = "kind=none";
  for (const OptionText& option : command.options) {
    options.insert(options.end(), option.names.begin(), option.names.end());
    if (!option.value.empty())
      behind += fmt::format("        {}) {} takes={} ;;\n", joined(option.names, "|"), bash_words(option),
                            option.repeats ? "many" : "one");
  }
  // Folders are files too: of several arguments, one that takes files speaks for all.
  for (const OptionText& argument : command.arguments)
    if (place != "kind=files") place = bash_words(argument);
  const std::string commands = joined(names_below(command), " ");
  if (!commands.empty()) place = fmt::format("kind=words words='{}'", commands);
  return fmt::format(
      "    '{}')\n"
      "      options='{}' commands=' {} '\n"
      "      case $2 in\n"
      "{}"
      "        '') {} ;;\n"
      "      esac\n"
      "      ;;\n",
      command.name, joined(options, " "), commands, behind, place);
}

constexpr const char* bash_end = R"(
_capstan() {
  local cur=${COMP_WORDS[COMP_CWORD]} command=capstan option= word
  local options commands kind words takes
  # Which command does the line name, and behind which option is the cursor? Bash cuts words at "=".
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

/// For a word within single quotes of Fish.
std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += (c == '\'' || c == '\\' ? "\\" : "") + std::string(1, c);
  return out + "'";
}

/// The options that make Fish complete the value.
std::string fish_words(const OptionText& option) {
  switch (words_of(option)) {
    case Words::files:
      return " -F";
    case Words::folders:
      return " -a '(__fish_complete_directories)'";
    case Words::keys:
      return " -a '(_capstan_keys)'";
    case Words::choices:
      return " -a " + fish_quoted(choices_of(option.value));
    case Words::none:
      break;
  }
  return "";
}

std::string fish_lines(const CommandText& command) {
  // The line names this command with all it belongs to, and none of those below it.
  std::string here = "true";
  for (size_t at = command.name.find(' '); at != std::string::npos; at = command.name.find(' ', at + 1))
    here += "; and __fish_seen_subcommand_from " + command.name.substr(at + 1, command.name.find(' ', at + 1) - at - 1);
  const std::vector<std::string> below = names_below(command);
  if (!below.empty()) here += "; and not __fish_seen_subcommand_from " + joined(below, " ");
  const std::string start = "complete -c capstan -n " + fish_quoted(here);

  std::string out;
  for (size_t i = 0; i < below.size(); ++i)
    out += fmt::format("{} -a {} -d {}\n", start, below[i], fish_quoted(command.commands[i].help));
  for (const OptionText& argument : command.arguments)
    if (words_of(argument) != Words::none) out += start + fish_words(argument) + "\n";
  for (const OptionText& option : command.options) {
    out += start;
    for (const std::string& name : option.names)
      out += name.compare(0, 2, "--") == 0 ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (!option.value.empty() && option.value[0] != '[') out += " -r" + fish_words(option);
    out += " -d " + fish_quoted(option.help) + "\n";
  }
  return out;
}

}  // namespace

std::string bash_completion(const CommandText& root, const std::vector<std::string>& keys) {
  std::string out = "# Completion of capstan for Bash; written by `capstan completion bash`.\n\n";
  out += "_capstan_keys='" + joined(keys, " ") + "'\n\n";
  out +=
      "# _capstan_at COMMAND OPTION: what the command knows, and what stands behind the option (or, without one, in "
      "an\n"
      "# argument's place)\n"
      "_capstan_at() {\n  options= commands= kind=none words= takes=none\n  case $1 in\n";
  for (const CommandText* const command : all_commands(root)) out += bash_case(*command);
  return out + "  esac\n}\n" + bash_end;
}

std::string fish_completion(const CommandText& root, const std::vector<std::string>& keys) {
  std::string out = "# Completion of capstan for Fish; written by `capstan completion fish`.\n\n";
  out += "function _capstan_keys\n  printf '%s=\\n' " + joined(keys, " ") + "\nend\n\ncomplete -c capstan -f\n";
  for (const CommandText* const command : all_commands(root)) out += fish_lines(*command);
  return out;
}

}  // namespace capstan
