#include "tests/cli/support/terminal.hpp"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <stdexcept>

namespace capstan::testing {

std::vector<std::string> screen_of(const std::string& written, size_t columns) {
  const std::string clear = "\033[K";
  std::vector<std::string> lines(1);
  size_t column = 0;
  for (size_t at = 0; at < written.size(); ++at) {
    if (written.compare(at, clear.size(), clear) == 0) {
      lines.back().resize(std::min(lines.back().size(), column));
      at += clear.size() - 1;
    } else if (written[at] == '\r') {
      column = 0;
    } else if (written[at] == '\n') {
      lines.emplace_back();
      column = 0;
    } else {
      if (column == columns) {
        lines.emplace_back();
        column = 0;
      }
      if (lines.back().size() <= column) lines.back().resize(column + 1, ' ');
      lines.back()[column++] = written[at];
    }
  }
  for (std::string& line : lines) line.erase(line.find_last_not_of(' ') + 1);
  return lines;
}

TerminalOutcome run_on_terminal(const Workplace& place, const Words& arguments, int columns) {
  Words words = Words{program_path()} + arguments;
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const winsize size{24, static_cast<unsigned short>(columns), 0, 0};
  int terminal = -1;
  const pid_t id = forkpty(&terminal, nullptr, nullptr, &size);
  if (id < 0) throw std::runtime_error("no pseudo-terminal can be opened");
  if (id == 0) {
    if (chdir(place.folder().c_str()) == 0) execv(pointers[0], pointers.data());
    _exit(127);
  }
  TerminalOutcome outcome;
  char bytes[4096];
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(300);
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd ready{terminal, POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(std::max<int64_t>(left.count(), 0))) == 0) {  // it hangs
      kill(id, SIGKILL);
      break;
    }
    const ssize_t count = read(terminal, bytes, sizeof(bytes));
    if (count > 0) outcome.written.append(bytes, static_cast<size_t>(count));
    if (count == 0 || (count < 0 && errno != EINTR)) break;  // EIO: the program has ended
  }
  close(terminal);
  int status = 0;
  waitpid(id, &status, 0);
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  outcome.screen = screen_of(outcome.written, static_cast<size_t>(columns));
  return outcome;
}

}  // namespace capstan::testing
