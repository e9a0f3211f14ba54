// The command line as a table: every command has a help with an example and refuses what it does not know, and the
// command lines that documents show are ones that it understands.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "apps/commands/commands.hpp"
#include "core/io/log.hpp"
#include "tests/support/source_dir.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// The names of all commands below this one that have no subcommands: {"config", "print"}.
std::vector<Words> commands_below(CLI::App& command, const Words& names = {}) {
  std::vector<Words> all;
  for (CLI::App* const below : command.get_subcommands([](CLI::App*) { return true; })) {
    Words longer = names;
    longer.push_back(below->get_name());
    const std::vector<Words> found = commands_below(*below, longer);
    all.insert(all.end(), found.begin(), found.end());
  }
  return all.empty() ? std::vector<Words>{names} : all;
}

std::vector<Words> all_commands() {
  CLI::App program;
  add_commands(program);
  return commands_below(program);
}

struct Outcome {
  int code = 0;
  std::string out, log;
};

Outcome run(Words words) {
  words.insert(words.begin(), "capstan");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  Outcome outcome;
  std::ostringstream out;
  std::streambuf* const before = std::cout.rdbuf(out.rdbuf());
  set_log_sink([&](LogLevel, std::string_view message) { outcome.log += std::string(message) + "\n"; });
  outcome.code = run_command_line(static_cast<int>(arguments.size()), arguments.data());
  set_log_sink({});
  std::cout.rdbuf(before);
  outcome.out = out.str();
  return outcome;
}

Words operator+(Words words, const std::string& word) {
  words.push_back(word);
  return words;
}

TEST_CASE("every command has a help with its options and an example") {
  CHECK(all_commands().size() >= 15);
  for (const Words& command : all_commands()) {
    const Outcome help = run(command + "--help");
    INFO(command.back(), ": ", help.log);
    CHECK(help.code == 0);
    CHECK(help.out.find("Usage: capstan " + command.front()) != std::string::npos);
    CHECK(help.out.find("--log-level") != std::string::npos);
    CHECK((run({command.front(), "--help"}).out + help.out).find("For example:  ") != std::string::npos);
  }
}

TEST_CASE("every command refuses an option that it does not have, and names the one that was meant") {
  for (const Words& command : all_commands()) {
    const Outcome unknown = run(command + "--no-such-option");
    INFO(command.back(), ": ", unknown.log);
    CHECK(unknown.code == 2);
    CHECK(unknown.log.find("--no-such-option: unknown option\n") != std::string::npos);
    CHECK(unknown.log.find(" --help shows the usage") != std::string::npos);
    CHECK(run(command + "--quite").log.find("did you mean --quiet?") != std::string::npos);
  }
}

/// The words of a line of Bash up to its first pipe, redirection or comment, which `rest` gets.
Words words_of(const std::string& line, std::string& rest) {
  Words words;
  std::string word;
  char quote = 0;
  bool inside = false;
  size_t at = 0;
  for (; at < line.size(); ++at) {
    const char c = line[at];
    if (quote == 0 && (c == '|' || c == '>' || c == '&' || c == ';' || (c == '#' && !inside))) break;
    if (quote == 0 && c == ' ') {
      if (inside) words.push_back(word);
      word.clear();
      inside = false;
    } else if (c == quote || (quote == 0 && (c == '"' || c == '\''))) {
      quote = c == quote ? 0 : c;
      inside = true;
    } else {
      word += c;
      inside = true;
    }
  }
  if (inside) words.push_back(word);
  rest = at < line.size() && line[at] != '#' ? line.substr(at + 1) : "";
  return words;
}

/// The command lines of the program in the code blocks of a page.
std::vector<Words> command_lines(const fs::path& page) {
  std::ifstream in(page);
  std::vector<Words> found;
  bool open = false;
  for (std::string line, more; std::getline(in, line);) {
    if (line.rfind("```", 0) == 0) open = !open;
    if (!open) continue;
    while (!line.empty() && line.back() == '\\' && std::getline(in, more))
      line = line.substr(0, line.size() - 1) + more;
    while (!line.empty()) {
      Words words = words_of(line, line);
      if (words.size() < 2 || fs::path(words.front()).filename() != "capstan") continue;
      words.erase(words.begin());
      found.push_back(std::move(words));
    }
  }
  return found;
}

/// What is wrong with a command line; empty if nothing is. Nothing runs, since --help is the first thing done.
std::string problem_of(Words words) {
  CLI::App program;
  add_commands(program);
  words.emplace_back("--help");
  std::reverse(words.begin(), words.end());
  try {
    program.parse(words);
  } catch (const CLI::CallForHelp&) {
    const Words rest = program.remaining(true);
    return rest.empty() ? "" : rest.front() + " is unknown";
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "it has run";
}

TEST_CASE("the command lines of the documents are understood") {
  const fs::path here = fs::current_path();
  fs::current_path(fs::path(source_path("README.md")).parent_path());  // recipes are found by name
  size_t count = 0;
  std::vector<fs::path> pages = {"README.md"};
  for (const auto& page : fs::directory_iterator("docs"))
    if (page.path().extension() == ".md") pages.push_back(page.path());
  for (const fs::path& page : pages)
    for (const Words& words : command_lines(page)) {
      INFO(page.string(), ": capstan ", words.front(), " ... ", words.back());
      CHECK(problem_of(words) == "");
      ++count;
    }
  fs::current_path(here);
  CHECK(count >= 20);
  CHECK(problem_of({"train", "--confg", "lm"}) != "");
  CHECK(problem_of({"eval", "runs/lm", "--beam", "0"}) != "");
}

}  // namespace
}  // namespace capstan
