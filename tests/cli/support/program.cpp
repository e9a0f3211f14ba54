#include "tests/cli/support/program.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace capstan::testing {
namespace {

/// The words of a command line as posix_spawn wants them.
class ArgumentWords {
 public:
  explicit ArgumentWords(std::vector<std::string> words) : words_(std::move(words)) {
    for (std::string& word : words_) pointers_.push_back(word.data());
    pointers_.push_back(nullptr);
  }
  char* const* data() const { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
};

pid_t spawn(const fs::path& folder, const std::vector<std::string>& command, const fs::path& files) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, (files / "in").c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, (files / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, (files / "err").c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  const ArgumentWords words(command);
  pid_t id = -1;
  const int problem = posix_spawn(&id, command.front().c_str(), &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) throw std::runtime_error(command.front() + " cannot be started: build it first");
  return id;
}

}  // namespace

std::string program_path() {
  const char* const other = std::getenv("CAPSTAN_PROGRAM");
  return other != nullptr ? other : CAPSTAN_PROGRAM;
}

Words::Words(const std::string& text) {
  std::istringstream stream(text);
  for (std::string word; stream >> word;) push_back(word);
}

Words operator+(Words first, const Words& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::map<std::string, std::string> Workplace::content(const std::string& name) const {
  std::map<std::string, std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(*this / name)) {
    const std::string path = entry.path().lexically_relative(folder()).string();
    if (entry.is_symlink())
      files[path] = "-> " + fs::read_symlink(entry.path()).string();
    else if (entry.is_regular_file())
      files[path] = read(path);
  }
  return files;
}

Process::Process(const Workplace& place, const Words& arguments, const std::string& input)
    : Process(place, Command{Words{program_path()} + arguments}, input) {}

Process::Process(const Workplace& place, const Command& command, const std::string& input) {
  files_.write("in", input);
  id_ = spawn(place.folder(), command.words, files_.folder());
}

Process::~Process() {
  if (ended()) return;
  send(SIGKILL);
  waitpid(id_, &status_, 0);
}

void Process::send(int signal) const { ::kill(id_, signal); }

bool Process::ended() {
  if (!ended_) ended_ = waitpid(id_, &status_, WNOHANG) == id_;
  return ended_;
}

Outcome Process::wait(std::chrono::seconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  bool hung = false;
  while (!ended()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (hung || std::chrono::steady_clock::now() < deadline) continue;
    hung = true;
    send(SIGKILL);
  }
  Outcome outcome;
  if (WIFEXITED(status_)) outcome.code = WEXITSTATUS(status_);
  if (WIFSIGNALED(status_)) outcome.signal = WTERMSIG(status_);
  outcome.out = files_.read("out");
  outcome.err = files_.read("err") + (hung ? "\n(killed: it did not end)" : "");
  return outcome;
}

Outcome run(const Workplace& place, const Words& arguments, const std::string& input) {
  return Process(place, arguments, input).wait();
}

Outcome run_shell(const Workplace& place, const std::string& command) {
  const Workplace files;
  files.write("in", "");
  const pid_t id =
      spawn(place.folder(), {"/bin/bash", "-c", "capstan=" + program_path() + "; " + command}, files.folder());
  int status = 0;
  waitpid(id, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0, files.read("out"),
          files.read("err")};
}

std::string indecency(const Outcome& outcome) {
  if (outcome.signal != 0) return "a signal ended it: " + std::to_string(outcome.signal);
  for (const char* const text :
       {"terminate called", "what():", "std::", "exception", "filesystem error", "basic_string", "yaml-cpp",
        "Assertion", "Sanitizer", "runtime error", "it did not end"})
    if (outcome.err.find(text) != std::string::npos) return std::string("it says \"") + text + "\"";
  return "";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace capstan::testing
