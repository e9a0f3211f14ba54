// One system call of a command fails: any of those it makes, with any error that a disk, a kernel or a limit may
// answer, or it transfers half of what was asked. The command then succeeds, or ends with an error that names the file;
// the same command afterwards comes to the same bits as an undisturbed one.
//   scripts/attack.sh calls [COUNT] [SEED]     CAPSTAN_ATTACK_ONLY=kind: one kind of run; kind:CALL:ERROR: one case
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "tests/faults/kinds.hpp"
#include "tests/faults/traced_process.hpp"

namespace capstan::testing {
namespace {

constexpr int half = 0;  // in place of an error: half of the bytes are transferred

/// The calls of an undisturbed command.
class Record final : public CallObserver {
 public:
  Verdict before(const CallStop& stop) override {
    calls_.push_back(stop.call);
    return {};
  }
  const std::vector<const SystemCall*>& calls() const { return calls_; }

 private:
  std::vector<const SystemCall*> calls_;
};

/// Fails the call with this number, and remembers which it was.
class FailAt final : public CallObserver {
 public:
  FailAt(int64_t count, int error_number) : count_(count), error_(error_number) {}

  Verdict before(const CallStop& stop) override {
    if (stop.count != count_) return {};
    stop_ = stop;
    caller_ = stop.caller();
    if (error_ != half)
      return {stop.call->number == SYS_close ? Verdict::Kind::fail_after : Verdict::Kind::fail, error_};
    const uint64_t asked = stop.call->count < 0 ? 0 : stop.arguments[stop.call->count];
    if (stop.call->number == SYS_writev || asked < 2) return {};
    return {Verdict::Kind::shorten, static_cast<int64_t>(asked / 2)};
  }
  const CallStop& stop() const { return stop_; }
  const std::string& caller() const { return caller_; }
  bool came() const { return stop_.call != nullptr; }

 private:
  int64_t count_;
  int error_;
  CallStop stop_;
  std::string caller_;
};

struct Case {
  int64_t call = 0;
  int error_number = half;
};

/// A case of this kind: first what is called, then which of these calls, then how it fails, so that the few renames
/// come as often as the many reads.
Case draw(const std::vector<const SystemCall*>& calls, std::mt19937& random) {
  std::vector<const SystemCall*> names;
  for (const SystemCall* const call : calls)
    if (std::find(names.begin(), names.end(), call) == names.end()) names.push_back(call);
  const SystemCall* const name = names[random() % names.size()];
  std::vector<int64_t> places;
  for (size_t i = 0; i < calls.size(); ++i)
    if (calls[i] == name) places.push_back(static_cast<int64_t>(i) + 1);
  const size_t ways = name->errors.size() + (name->count >= 0 ? 1 : 0), way = random() % ways;
  return {places[random() % places.size()], way < name->errors.size() ? name->errors[way] : half};
}

std::string describe(const Kind& kind, const Case& test, const FailAt& fault) {
  std::string text = kind.name + ":" + std::to_string(test.call) + ":" +
                     (test.error_number == half ? "half" : error_name(test.error_number));
  if (!fault.came()) return text + " (the call did not come)";
  text += " (" + fault.stop().call->name + " " + fault.stop().path;
  if (!fault.stop().second_path.empty()) text += " " + fault.stop().second_path;
  if (fault.stop().path.empty() && fault.stop().call->number == SYS_mmap)
    text += "of " + std::to_string(fault.stop().arguments[1]) + " bytes by " + fault.caller();
  return text + ")";
}

/// The names that a message about the call may use: of the file, of its folder, and without the dot and the ending of a
/// file that is being written.
bool names_file(const std::string& message, const CallStop& stop, const Workplace& place) {
  for (const std::string& text : {stop.path, stop.second_path}) {
    if (text.rfind(place.folder().string(), 0) != 0) continue;
    const fs::path path = fs::path(text).lexically_normal();
    if (path == place.folder()) return true;
    std::string name = path.filename().string();
    if (name.rfind(".unfinished-", 0) == 0) name = name.substr(12);
    if (name.front() == '.') name = name.substr(1);
    const size_t ending = name.rfind(".tmp");
    if (ending != std::string::npos) name = name.substr(0, ending);
    if (contains(message, name) || contains(message, path.parent_path().filename().string())) return true;
  }
  return false;
}

struct Tally {
  int made = 0, succeeded = 0, refused = 0, unmet = 0, limits = 0;
};

/// Where a library leaves nothing to be done: oneDNN 2.6 calls a null pointer when the kernel refuses it memory for the
/// code that it makes at a product's first use (docs/reliability.md).
bool is_known_limit(const TracedOutcome& outcome, const FailAt& fault) {
  return outcome.signal == SIGSEGV && fault.stop().call->number == SYS_mmap && contains(fault.caller(), "libdnnl");
}

/// What is wrong with how a disturbed command ended; empty if nothing is.
std::string complaint(const TracedOutcome& outcome, const FailAt& fault, const Workplace& place, const Kind& kind) {
  if (outcome.hung) return "it hangs";
  if (outcome.signal != 0) return "signal " + std::to_string(outcome.signal);
  const std::string unfit = indecency(outcome);
  if (!unfit.empty()) return unfit;
  if (outcome.code == 0) {
    const std::string differs = differences(result_of(place, kind, outcome), expected_result(kind));
    return differs.empty() ? "" : "it reports success, but these differ: " + differs;
  }
  if (outcome.code != 1 && outcome.code != 2) return "exit code " + std::to_string(outcome.code);
  const bool message_lost = fault.stop().call->names == SystemCall::Names::descriptor && fault.stop().arguments[0] <= 2;
  if (message_lost) return "";
  if (!contains(outcome.err, "error")) return "it fails without a message";
  const bool of_a_file = fault.stop().path.rfind(place.folder().string(), 0) == 0 ||
                         fault.stop().second_path.rfind(place.folder().string(), 0) == 0;
  return of_a_file && !names_file(outcome.err, fault.stop(), place) ? "the message does not name the file" : "";
}

void check_case(const Kind& kind, const Case& test, Tally& tally) {
  const Workplace place;
  prepare(place, kind);
  FailAt fault(test.call, test.error_number);
  const TracedOutcome outcome = run_traced(place, kind.command, fault);
  ++tally.made;
  ++(outcome.code == 0 ? tally.succeeded : tally.refused);
  if (!fault.came()) {
    ++tally.unmet;
    return;
  }
  const bool known = is_known_limit(outcome, fault);
  tally.limits += known ? 1 : 0;
  const std::string name = describe(kind, test, fault);
  INFO(name, "\nexit code ", outcome.code, ", standard error:\n", outcome.err);
  const std::string problem = known ? "" : complaint(outcome, fault, place, kind);
  CHECK_MESSAGE(problem.empty(), problem);
  if (!problem.empty()) tell(name + ": " + problem + "\n" + outcome.err);

  const Outcome again = run(place, kind.command);
  INFO("the same command again: exit code ", again.code, "\n", again.err);
  CHECK(again.code == 0);
  const std::string differs = differences(result_of(place, kind, again), expected_result(kind));
  CHECK_MESSAGE(differs.empty(), "differs after the same command: ", differs);
  if (again.code != 0 || !differs.empty()) tell(name + ": afterwards: " + differs + "\n" + again.err);
}

/// "kind:CALL:ERROR" of CAPSTAN_ATTACK_ONLY; false if it is not of this form.
bool single_case(Kind& kind, Case& test) {
  const char* const only = std::getenv("CAPSTAN_ATTACK_ONLY");
  const std::string text = only != nullptr ? only : "";
  const size_t first = text.find(':'), second = text.rfind(':');
  if (first == std::string::npos || first == second) return false;
  kind = kind_called(text.substr(0, first));
  test.call = std::stoll(text.substr(first + 1, second - first - 1));
  const std::string error = text.substr(second + 1);
  for (const SystemCall& call : system_calls())
    for (const int number : call.errors)
      if (error_name(number) == error) test.error_number = number;
  return true;
}

TEST_CASE("a failing system call: success or an error that names the file, and the same bits afterwards") {
  if (!tracing_problem().empty()) {
    MESSAGE("skipped: " << tracing_problem());
    CHECK_MESSAGE(std::getenv("CAPSTAN_ATTACK_COUNT") == nullptr, "an attack was asked for");
    return;
  }
  Tally tally;
  Kind only;
  Case test;
  if (single_case(only, test)) return check_case(only, test, tally);
  const Extent attack = extent(200);
  const std::vector<Kind> kinds = chosen(all_kinds());
  std::mt19937 random(attack.seed);
  std::map<std::string, std::vector<const SystemCall*>> calls;
  int64_t all = 0;
  for (const Kind& kind : kinds) {
    const Workplace place;
    prepare(place, kind);
    Record record;
    const TracedOutcome outcome = run_traced(place, kind.command, record);
    INFO(kind.name, ": ", outcome.err);
    REQUIRE(outcome.code == 0);
    calls[kind.name] = record.calls();
    all += static_cast<int64_t>(record.calls().size());
  }
  for (int i = 0; i < attack.count; ++i) {
    const Kind& kind = kinds[random() % kinds.size()];
    check_case(kind, draw(calls[kind.name], random), tally);
    if (i % 50 == 49) tell(std::to_string(i + 1) + " failing calls");
  }
  MESSAGE(tally.made, " failing calls out of ", all, " calls of ", kinds.size(), " commands: ", tally.succeeded,
          " succeeded nevertheless, ", tally.refused, " ended with an error (", tally.limits,
          " of them within oneDNN), ", tally.unmet, " did not come");
  CHECK(2 * tally.unmet < tally.made);
}

}  // namespace
}  // namespace capstan::testing
