// man_page() of command_parser.hpp, in roff. tests/cli/test_pages.sh holds that it has every command and option.
#include <fmt/core.h>

#include <sstream>

#include "apps/command_line/command.hpp"
#include "apps/command_line/command_parser.hpp"

namespace capstan {
namespace {

/// Text with backslashes, hyphens, quotes and leading dots escaped, so that roff prints it as it is.
std::string plain(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool line_start = i == 0 || text[i - 1] == '\n';
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'') {
      out += "\\(aq";
    } else if (c == '`') {
      out += "\\(ga";
    } else if (c == '^') {
      out += "\\(ha";
    } else if (c == '~') {
      out += "\\(ti";
    } else {
      out += c;
    }
  }
  return out;
}

/// Text whose line breaks are kept.
std::string as_written(const std::string& text) { return ".PP\n.EX\n" + plain(text) + "\n.EE\n"; }

/// "-c, --config FILE ..." with names in bold and values in italics.
std::string heading(const OptionText& option) {
  std::string out;
  for (const std::string& name : option.names) out += (out.empty() ? "\\fB" : ", \\fB") + plain(name) + "\\fR";
  if (!option.value.empty())
    out += (out.empty() ? "\\fI" : " \\fI") + plain(option.value) + "\\fR" + (option.repeats ? " ..." : "");
  return out;
}

std::string entry(const OptionText& option) {
  std::string out = ".TP\n" + heading(option) + "\n" + plain(option.help);
  if (option.required) out += " (required)";
  if (!option.default_value.empty()) out += " [" + plain(option.default_value) + "]";
  return out + "\n";
}

std::string synopsis(const CommandText& command) {
  std::string out = ".B " + plain(command.name) + "\n";
  if (!command.options.empty()) out += "[\\fIOPTIONS\\fR]\n";
  for (const OptionText& argument : command.arguments)
    out += (argument.required ? "" : "[") + heading(argument) + (argument.required ? "" : "]") + "\n";
  if (!command.commands.empty()) out += "\\fICOMMAND\\fR\n";
  return out;
}

std::string section(const CommandText& command) {
  std::string out = ".SS " + plain(command.name) + "\n" + plain(command.help) + ".\n.PP\n" + synopsis(command);
  for (const OptionText& argument : command.arguments) out += entry(argument);
  for (const OptionText& option : command.options) out += entry(option);
  if (!command.footer.empty()) out += as_written(command.footer);
  return out;
}

}  // namespace

std::string man_page(const CommandText& root) {
  std::string out = fmt::format(
      ".\\\" Written by `capstan man`.\n.TH CAPSTAN 1 \"\" \"Capstan {}\" \"User Commands\"\n", CAPSTAN_VERSION);
  out += ".SH NAME\ncapstan \\- train, compare and serve attention-free and linear-cost text models\n";
  out += ".SH SYNOPSIS\n" + synopsis(root);
  out += ".SH DESCRIPTION\n" + plain(root.help) + "\n" + as_written(root.footer);
  out += ".SH OPTIONS\n";
  for (const OptionText& option : root.options) out += entry(option);
  out += ".SH COMMANDS\n";
  for (const CommandText* const command : all_commands(root))
    if (command != &root) out += section(*command);
  out += ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] :
       {std::pair{exit_done, "done"}, std::pair{exit_failed, "failed"},
        std::pair{exit_wrong_usage, "wrong usage or configuration"},
        std::pair{exit_interrupted, "interrupted by a signal and saved; the same command resumes it"}})
    out += fmt::format(".TP\n{}\n{}\n", code, meaning);
  out += ".SH FILES\n";
  for (const auto& [file, meaning] :
       {std::pair{"runs/NAME/config.yaml", "the complete configuration of a run, which --config accepts"},
        std::pair{"runs/NAME/metrics.jsonl, train.log", "the metrics and the log of training"},
        std::pair{"runs/NAME/checkpoints/",
                  "the weights, with the links last and best; damaged-step-N is what was left of a damaged one"}})
    out += fmt::format(".TP\n\\fI{}\\fR\n{}\n", plain(file), meaning);
  return out;
}

}  // namespace capstan
