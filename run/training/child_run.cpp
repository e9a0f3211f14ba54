// Child processes are made by fork(), with the memory of the parent but no thread of it: the pool's threads are ended
// before. tests/cli/training/test_sweep.cpp.
#include "run/training/child_run.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {
namespace {

/// Blocks the signals during its lifetime: one that came between fork() and the child's own handlers would be lost.
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

/// Runs in the child process: gives signals their default effect, ends with the parent, and exits with what `body`
/// returns.
[[noreturn]] void be_the_child(const std::function<int()>& body, pid_t parent) {
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) ::signal(number, SIG_DFL);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) ::_exit(1);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::_Exit(body());  // runs no destructors: what the parent has opened is the parent's to close
}

}  // namespace

Ending train_in_child(const RunConfig& config, const TrainRunOptions& options, const Guard& guard,
                      const std::function<bool()>& stop) {
  const auto body = [&] {
    return guard([&] {
      Communicator one_process;
      return exit_code_of(train_run(config, options, one_process));
    });
  };
  const pid_t parent = getpid();
  pid_t child = -1;
  {
    const SignalsHeld held;
    end_threads();
    child = ::fork();
    if (child == 0) be_the_child(body, parent);
  }
  if (child < 0) throw_file_error("start a process for", folder_of(config).string(), errno);
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
