#include "apps/training/child_run.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "apps/command_line/command.hpp"
#include "core/base/error.hpp"
#include "core/io/file.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

/// Blocks the signals during its lifetime.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t watched;
    sigemptyset(&watched);
    for (const int number : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&watched, number);
    sigprocmask(SIG_BLOCK, &watched, &before_);
  }
  ~SignalsHeld() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

/// The process of a run; it saves and stops when this process ends.
[[noreturn]] void be_the_run(const RunConfig& config, const TrainRunOptions& options, pid_t parent) {
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) ::signal(number, SIG_DFL);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) ::_exit(exit_interrupted);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  Communicator alone;
  const int code = run_command([&] { return train_run(config, options, alone); });
  std::_Exit(code);  // without closing what the parent has opened
}

}  // namespace

Ending run_in_child(const RunConfig& config, const TrainRunOptions& options, const std::function<bool()>& stop) {
  const pid_t parent = getpid();
  pid_t child = -1;
  {
    const SignalsHeld held;
    child = ::fork();
    if (child == 0) be_the_run(config, options, parent);
  }
  if (child < 0) throw_file_error("start a process for", (fs::path(config.folder) / config.name).string(), errno);
  int status = 0;
  for (bool asked = false; ::waitpid(child, &status, WNOHANG) == 0;) {
    // Ctrl-C reaches both processes. A second SIGINT would end the run immediately; SIGTERM always lets it save.
    if (stop() && !asked) asked = ::kill(child, SIGTERM) == 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (WIFSIGNALED(status)) return {-1, WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

std::string describe_ending(const Ending& ending) {
  if (ending.signal == 0) return fmt::format("exit code {}", ending.code);
  const char* const name = sigabbrev_np(ending.signal);
  return fmt::format("ended by SIG{}{}", name != nullptr ? name : "?",
                     ending.signal == SIGKILL ? " (possibly out of memory)" : "");
}

}  // namespace capstan
