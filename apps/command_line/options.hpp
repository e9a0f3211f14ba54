// Options that several subcommands share. tests/cli/inputs/test_bad_input.cpp holds what wrong values are told.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "core/config/schema.hpp"
#include "run/setup/run_config.hpp"

namespace capstan {

/// A check of CLI::Option: what is wrong with the text of a number; empty if it is within the limits.
std::function<std::string(const std::string& text)> within(const Constraint& limits);

/// An option whose value is a number; --help shows the present one as the default.
template <class Number>
CLI::Option* add_number(CLI::App& command, const std::string& names, Number& value, const Constraint& limits,
                        const std::string& help) {
  return command.add_option(names, value, help)->check(within(limits))->capture_default_str();
}

/// An option whose value is a word of an enum; --help shows the present one as the default.
template <class Enum>
CLI::Option* add_word(CLI::App& command, const std::string& names, Enum& value, const std::string& help) {
  std::vector<std::string> words;
  for (const auto& known : enum_names(value)) words.emplace_back(known.name);
  const auto take = [&value](const std::string& word) { value = enum_value<Enum>(word).value(); };
  return command.add_option_function<std::string>(names, take, help)
      ->check(CLI::IsMember(words))
      ->default_str(enum_name(value));
}

/// --format, one of these words.
void add_format(CLI::App& command, std::string& format, const std::vector<std::string>& words);

/// -o,--output, the name of a FILE or a FOLDER.
CLI::Option* add_output(CLI::App& command, std::string& output, const std::string& type, const std::string& help);

/// RUN, which is required.
void add_run(CLI::App& command, std::string& run);
/// RUN ..., of which one is required.
void add_runs(CLI::App& command, std::vector<std::string>& runs, const std::string& help);

/// --config FILE... and --set KEY=VALUE... Returns the option --config.
CLI::Option* add_config_options(CLI::App& command, ConfigOptions& options);
/// --set, for keys of a run that exists.
void add_set_option(CLI::App& command, std::vector<std::string>& overrides);
/// --force: train even if the memory cannot be enough.
void add_force_flag(CLI::App& command, bool& force);

/// "; " and what an argument that the command does not take was probably meant for: a value, a run, data or a
/// configuration. Empty for a command without --config.
std::string stray_remedy(const CLI::App& command, const std::string& argument);

}  // namespace capstan
