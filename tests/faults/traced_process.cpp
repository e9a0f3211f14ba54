#include "tests/faults/traced_process.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace capstan::testing {
namespace {

// The C library asks for this limit once the dynamic loader is done: the last call before the program's own.
constexpr long loader_is_done = SYS_prlimit64;

constexpr int trace_options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                              PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;

/// A filter for the kernel: it stops at our calls only, so that the others cost nothing.
std::vector<sock_filter> call_filter() {
  std::vector<sock_filter> code;
  code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  const auto trace = [&code](long number) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE));
  };
  for (const SystemCall& call : system_calls()) trace(call.number);
  trace(loader_is_done);
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  return code;
}

/// What the child does between fork and exec: system calls only.
[[noreturn]] void become(const char* folder, char* const* words, char* const* environment, const int (&files)[3],
                         const sock_fprog& filter) {
  for (int i = 0; i < 3; ++i) dup2(files[i], i);
  for (int i = 3; i < 64; ++i) close(i);
  setpgid(0, 0);
  if (chdir(folder) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ptrace(PTRACE_TRACEME, 0, 0, 0) == 0) {
    raise(SIGSTOP);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0) execve(words[0], words, environment);
  }
  _exit(126);
}

/// Kills a group of processes unless it is called off in time.
class Deadline {
 public:
  Deadline(pid_t group, std::chrono::seconds limit)
      : thread_([this, group, limit] {
          std::unique_lock<std::mutex> lock(mutex_);
          if (done_.wait_for(lock, limit, [this] { return off_; })) return;
          passed_ = true;
          ::kill(-group, SIGKILL);
        }) {}
  ~Deadline() { call_off(); }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  /// Did it pass before?
  bool call_off() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      off_ = true;
    }
    done_.notify_one();
    if (thread_.joinable()) thread_.join();
    return passed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  bool off_ = false, passed_ = false;
  std::thread thread_;
};

/// The threads of a traced program and its children, and what each waits for.
class Tracer {
 public:
  Tracer(pid_t first, CallObserver& observer) : first_(first), observer_(observer) { threads_[first]; }

  /// Returns the exit status of the first process.
  int follow() {
    int status = 0, result = 0;
    while (!threads_.empty()) {
      const pid_t thread = waitpid(-1, &status, __WALL);
      if (thread < 0 && errno == EINTR) continue;
      if (thread < 0) break;
      if (WIFSTOPPED(status)) {
        stopped(thread, status);
        continue;
      }
      if (thread == first_) result = status;
      threads_.erase(thread);
    }
    return result;
  }

 private:
  struct Thread {
    bool loading = true;  // the dynamic loader is at work
    bool inside = false;  // a call whose end we wait for
    CallStop stop;
    Verdict verdict;
  };

  static void go_on(pid_t thread, int request, int signal) {
    ptrace(static_cast<__ptrace_request>(request), thread, nullptr, static_cast<long>(signal));
  }

  void stopped(pid_t thread, int status) {
    const bool known = threads_.count(thread) > 0;
    Thread& state = threads_[thread];
    const int signal = WSTOPSIG(status), event = status >> 16;
    if (!known) {  // a new thread or process: of a program that is loaded
      state.loading = false;
      return go_on(thread, PTRACE_CONT, 0);
    }
    if (event == PTRACE_EVENT_SECCOMP) return entered(thread, state);
    if (event == PTRACE_EVENT_EXEC) state.loading = true;
    if (event != 0) return go_on(thread, PTRACE_CONT, 0);
    if (signal == (SIGTRAP | 0x80)) return left(thread, state);
    // The stop of a new thread may come after the event that tells of it.
    go_on(thread, PTRACE_CONT, signal == SIGSTOP ? 0 : signal);
  }

  void entered(pid_t thread, Thread& state) {
    user_regs_struct registers{};
    if (ptrace(PTRACE_GETREGS, thread, nullptr, &registers) != 0) return go_on(thread, PTRACE_CONT, 0);
    const auto number = static_cast<long>(registers.orig_rax);
    if (number == loader_is_done) state.loading = false;
    const SystemCall* const call = find_system_call(number);
    if (state.loading || call == nullptr) return go_on(thread, PTRACE_CONT, 0);
    state.stop = CallStop();
    state.stop.call = call;
    state.stop.count = ++count_;
    state.stop.process = thread;
    const uint64_t arguments[] = {registers.rdi, registers.rsi, registers.rdx,
                                  registers.r10, registers.r8,  registers.r9};
    std::copy_n(arguments, 6, state.stop.arguments);
    state.stop.stack = registers.rsp;
    state.stop.find_paths();
    state.verdict = observer_.before(state.stop);
    enact(thread, state, registers);
  }

  void enact(pid_t thread, Thread& state, user_regs_struct registers) {
    switch (state.verdict.kind) {
      case Verdict::Kind::proceed:
        break;
      case Verdict::Kind::fail:
        registers.orig_rax = static_cast<unsigned long long>(-1);
        registers.rax = static_cast<unsigned long long>(-state.verdict.value);
        ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
        return go_on(thread, PTRACE_CONT, 0);
      case Verdict::Kind::shorten:
        (state.stop.call->count == 3 ? registers.r10 : registers.rdx) =
            static_cast<unsigned long long>(state.verdict.value);
        ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
        break;
      case Verdict::Kind::fail_after:
        state.inside = true;
        return go_on(thread, PTRACE_SYSCALL, 0);
      case Verdict::Kind::kill:
        ::kill(first_, SIGKILL);
        break;
      case Verdict::Kind::kill_group:
        ::kill(-first_, SIGKILL);
        break;
    }
    state.inside = observer_.wants_results();
    go_on(thread, state.inside ? PTRACE_SYSCALL : PTRACE_CONT, 0);
  }

  void left(pid_t thread, Thread& state) {
    if (state.inside) {
      state.inside = false;
      user_regs_struct registers{};
      ptrace(PTRACE_GETREGS, thread, nullptr, &registers);
      state.stop.result = static_cast<int64_t>(registers.rax);
      if (state.verdict.kind == Verdict::Kind::fail_after) {
        registers.rax = static_cast<unsigned long long>(-state.verdict.value);
        ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
      } else {
        observer_.after(state.stop);
      }
    }
    go_on(thread, PTRACE_CONT, 0);
  }

  pid_t first_;
  CallObserver& observer_;
  std::map<pid_t, Thread> threads_;
  int64_t count_ = 0;
};

class OpenFile {
 public:
  OpenFile(const std::filesystem::path& path, int flags) : descriptor_(open(path.c_str(), flags | O_CLOEXEC, 0600)) {
    if (descriptor_ < 0) throw std::runtime_error("cannot open " + path.string());
  }
  ~OpenFile() { close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

/// Pointers as execve() wants them.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// This process's environment; LeakSanitizer, if the program has it, does not work under ptrace.
std::vector<std::string> environment() {
  const std::string key = "ASAN_OPTIONS=";
  std::vector<std::string> result;
  std::string options = key;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::string(*entry).rfind(key, 0) == 0)
      options = std::string(*entry) + ":";
    else
      result.emplace_back(*entry);
  }
  result.push_back(options + "detect_leaks=0");
  return result;
}

pid_t start(const Workplace& place, std::vector<std::string> words, const Workplace& files) {
  const OpenFile in(files / "in", O_RDONLY);
  const OpenFile out(files / "out", O_WRONLY | O_CREAT | O_TRUNC), err(files / "err", O_WRONLY | O_CREAT | O_TRUNC);
  // Above the numbers that become() sets.
  const int descriptors[3] = {fcntl(in.get(), F_DUPFD, 64), fcntl(out.get(), F_DUPFD, 64),
                              fcntl(err.get(), F_DUPFD, 64)};
  for (const int descriptor : descriptors) fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  std::vector<std::string> variables = environment();
  const std::vector<char*> arguments = pointers_to(words), settings = pointers_to(variables);
  std::vector<sock_filter> code = call_filter();
  const sock_fprog filter{static_cast<unsigned short>(code.size()), code.data()};
  const std::string folder = place.folder().string();
  const pid_t child = fork();
  if (child == 0) become(folder.c_str(), arguments.data(), settings.data(), descriptors, filter);
  for (const int descriptor : descriptors) close(descriptor);
  if (child < 0) throw std::runtime_error("fork failed");
  return child;
}

}  // namespace

std::string tracing_problem() {
  static const std::string problem = [] {
    const pid_t child = fork();
    if (child == 0) _exit(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : 1);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
      return "this machine does not allow ptrace";
    return "";
  }();
  return problem;
}

TracedOutcome run_traced(const Workplace& place, const Words& arguments, CallObserver& observer,
                         std::chrono::seconds limit, const std::string& input) {
  const Workplace files;
  files.write("in", input);
  const pid_t child = start(place, Words{program_path()} + arguments, files);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFSTOPPED(status) || ptrace(PTRACE_SETOPTIONS, child, nullptr, trace_options) != 0)
    throw std::runtime_error("this machine does not allow ptrace");
  TracedOutcome outcome;
  {
    Deadline deadline(child, limit);
    ptrace(PTRACE_CONT, child, nullptr, nullptr);
    status = Tracer(child, observer).follow();
    outcome.hung = deadline.call_off();
  }
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  outcome.out = files.read("out");
  outcome.err = files.read("err");
  return outcome;
}

}  // namespace capstan::testing
