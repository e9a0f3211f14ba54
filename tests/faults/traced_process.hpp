// Runs `capstan` under ptrace and stops it at each call of system_calls.hpp, whoever makes it: the program, a library
// or the C library itself, in any thread and child process. Nothing is preloaded and the program is not changed.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "tests/cli/support/program.hpp"
#include "tests/faults/call_stop.hpp"

namespace capstan::testing {

/// What becomes of a call.
struct Verdict {
  enum class Kind {
    proceed,
    fail,        // with `value` as errno; the kernel does nothing
    fail_after,  // the kernel does it, the program reads `value` as errno: what close() does
    shorten,     // to `value` bytes
    kill,        // SIGKILL for the process
    kill_group   // SIGKILL for the process and its children
  };
  Kind kind = Kind::proceed;
  int64_t value = 0;
};

class CallObserver {
 public:
  CallObserver() = default;
  virtual ~CallObserver() = default;
  CallObserver(const CallObserver&) = delete;
  CallObserver& operator=(const CallObserver&) = delete;

  virtual Verdict before(const CallStop& stop) = 0;
  /// Called after each call that proceeded, if wants_results().
  virtual void after(const CallStop&) {}
  virtual bool wants_results() const { return false; }
};

/// Kills at a call, counted from 1; without one, counts them.
class KillAtCall final : public CallObserver {
 public:
  explicit KillAtCall(int64_t count = 0, Verdict::Kind kill = Verdict::Kind::kill_group) : count_(count), kill_(kill) {}
  Verdict before(const CallStop& stop) override {
    last = stop.count;
    if (stop.count != count_) return {};
    name = stop.call->name;
    return {kill_};
  }

  int64_t last = 0;
  std::string name;

 private:
  int64_t count_;
  Verdict::Kind kill_;
};

struct TracedOutcome : Outcome {
  bool hung = false;  // it took longer than the limit and was killed
};

/// Why run_traced() cannot work here; empty if it can.
std::string tracing_problem();

/// Runs the program until it and all its children have ended.
TracedOutcome run_traced(const Workplace& place, const Words& arguments, CallObserver& observer,
                         std::chrono::seconds limit = std::chrono::seconds(60), const std::string& input = "");

}  // namespace capstan::testing
