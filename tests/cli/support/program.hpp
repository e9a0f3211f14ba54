// Runs `capstan` as a user does: in a folder of its own, with files, pipes and signals.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.hpp"
#include "tests/support/texts.hpp"

namespace capstan::testing {

namespace fs = std::filesystem;

/// The program under test: CAPSTAN_PROGRAM of the environment, or the one built with the test.
std::string program_path();

/// The words of a command line: one by one, or as a text in which blanks separate them.
struct Words : std::vector<std::string> {
  using std::vector<std::string>::vector;
  Words(std::vector<std::string> words) : std::vector<std::string>(std::move(words)) {}
  Words(const std::string& text);
  Words(const char* text) : Words(std::string(text)) {}
};

/// The words of the second behind those of the first.
Words operator+(Words first, const Words& second);

/// How a process ended. `code` is -1 when a signal ended it, and when it had to be killed because it hung.
struct Outcome {
  int code = -1;
  int signal = 0;
  std::string out, err;
};

/// A folder in which the program runs.
class Workplace : public TemporaryFolder {
 public:
  Workplace() : TemporaryFolder(std::filesystem::temp_directory_path()) {}  // with room for large files
  /// Every file below `name` (a folder) and its content; links by where they lead to.
  std::map<std::string, std::string> content(const std::string& name) const;
};

/// A running `capstan`. Its standard input is `input`, its output goes to files outside the workplace.
class Process {
 public:
  Process(const Workplace& place, const Words& arguments, const std::string& input = "");
  /// Any other program, by its path, with its arguments.
  struct Command {
    std::vector<std::string> words;
  };
  Process(const Workplace& place, const Command& command, const std::string& input = "");
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void send(int signal) const;
  /// What it has written to standard error so far.
  std::string errors() const { return files_.read("err"); }
  /// Has it ended? Its outcome waits for wait().
  bool ended();
  /// A process that takes longer than `limit` is killed.
  Outcome wait(std::chrono::seconds limit = std::chrono::seconds(300));

 private:
  pid_t id_ = -1;
  int status_ = 0;
  bool ended_ = false;
  Workplace files_;
};

Outcome run(const Workplace& place, const Words& arguments, const std::string& input = "");

/// `bash -c command` in the workplace; the program is "$capstan".
Outcome run_shell(const Workplace& place, const std::string& command);

/// `text` with "error: " and the like before it is one thing; what a reader must never see is another: no signal, no
/// exception's class, no unhandled exception. Empty when the outcome is presentable, else what is wrong with it.
std::string indecency(const Outcome& outcome);

std::vector<std::string> lines_of(const std::string& text);

}  // namespace capstan::testing
