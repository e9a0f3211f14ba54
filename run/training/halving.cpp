// Successive halving over candidates that a caller tries. tests/run/test_halving.cpp has candidates of known cost and
// time.
#include "run/training/halving.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/base/random.hpp"

namespace capstan {
namespace {

constexpr size_t kept = 3;           // one candidate of so many goes on to the next rung
constexpr int max_rungs = 4;         // the first trials have at least 1/27 of the training
constexpr int rungs_when_short = 3;  // where not all candidates fit into the time: 1/9 of the training at first

/// A candidate with what its trial came to.
struct Tried {
  size_t candidate = 0;
  TrialOutcome outcome;
};

/// Has a the smaller cost? A cost that is NAN is the worst.
bool better(const TrialOutcome& a, const TrialOutcome& b) {
  if (std::isnan(a.cost) || std::isnan(b.cost)) return !std::isnan(a.cost) && std::isnan(b.cost);
  return a.cost < b.cost;
}

/// Candidates 1 to count or, where these are more than `wanted`, so many of them at random, in ascending order.
std::vector<size_t> drawn(size_t count, size_t wanted, uint64_t seed) {
  std::vector<size_t> chosen(count);
  std::iota(chosen.begin(), chosen.end(), size_t{0});
  if (wanted < count) {
    const RandomKey key = random_key(seed, "candidates of the search");
    for (size_t i = 0; i < count; ++i) chosen[i] = permuted(i, count, key, 0);
    chosen.resize(wanted);
    std::sort(chosen.begin(), chosen.end());
  }
  for (size_t& candidate : chosen) ++candidate;  // candidate 0 has been tried as a whole already
  return chosen;
}

/// The time that is left of a search, and its trials.
class Search {
 public:
  Search(double seconds, const TryOut& try_out, const HalvingEvents& events)
      : left_(seconds), try_out_(try_out), events_(events) {}

  /// Tries candidates with 1 / divisor of the training, and returns those that ended, the best first. `expected`:
  /// seconds of the first trial.
  std::vector<size_t> rung(const std::vector<size_t>& candidates, int64_t divisor, double expected) {
    if (events_.on_rung) events_.on_rung({candidates.size(), divisor});
    std::vector<Tried> tried;
    double took = 0;
    for (const size_t candidate : candidates) {
      const double next = tried.empty() ? expected : took / static_cast<double>(tried.size());
      if (stopped()) break;
      short_of_time_ = short_of_time_ || next > left_;
      if (next > left_) break;
      const TrialOutcome outcome = attempt({candidate, divisor});
      if (!outcome.done) continue;
      tried.push_back({candidate, outcome});
      took += outcome.seconds;
    }
    std::stable_sort(tried.begin(), tried.end(),
                     [](const Tried& a, const Tried& b) { return better(a.outcome, b.outcome); });
    std::vector<size_t> order;
    for (const Tried& trial : tried) order.push_back(trial.candidate);
    return order;
  }

  TrialOutcome attempt(const Trial& trial) {
    const TrialOutcome outcome = try_out_(trial, left_);
    left_ -= outcome.seconds;
    short_of_time_ = short_of_time_ || left_ < 0;
    return outcome;
  }

  bool short_of_time() const { return short_of_time_; }
  bool stopped() const { return events_.stop && events_.stop(); }
  double left() const { return left_; }

 private:
  double left_;
  bool short_of_time_ = false;
  const TryOut& try_out_;
  const HalvingEvents& events_;
};

}  // namespace

HalvingPlan plan_halving(size_t candidates, double full_seconds, double seconds) {
  // The first rung takes as long as n / divisor full trials. Every other takes about as long: a third of the
  // candidates, each three times as long.
  const double full = std::max(full_seconds, 1e-9);
  int64_t divisor = 1;
  for (int rungs = 1; rungs <= max_rungs; ++rungs, divisor *= kept)
    if (static_cast<double>(candidates) * full * rungs / static_cast<double>(divisor) <= seconds)
      return {candidates, divisor};
  divisor = kept * kept;
  const double affordable = std::floor(seconds * static_cast<double>(divisor) / (full * rungs_when_short));
  return {static_cast<size_t>(std::clamp(affordable, 0.0, static_cast<double>(candidates))), divisor};
}

SearchEnd search_by_halving(size_t candidates, double seconds, uint64_t seed, const TryOut& try_out,
                            const HalvingEvents& events) {
  Search search(seconds, try_out, events);
  if (candidates == 0) return SearchEnd::failed;
  if (search.stopped()) return SearchEnd::stopped;
  const TrialOutcome first = search.attempt({0, 1});
  if (search.stopped()) return SearchEnd::stopped;
  if (!first.done) return SearchEnd::failed;
  const HalvingPlan plan = plan_halving(candidates - 1, first.seconds, search.left());
  std::vector<size_t> going = drawn(candidates - 1, plan.candidates, seed);
  for (int64_t divisor = plan.divisor; divisor >= 1 && !going.empty(); divisor /= static_cast<int64_t>(kept)) {
    going = search.rung(going, divisor, first.seconds / static_cast<double>(divisor));
    if (search.stopped()) return SearchEnd::stopped;
    going.resize((going.size() + kept - 1) / kept);
  }
  return search.short_of_time() || plan.candidates + 1 < candidates ? SearchEnd::time : SearchEnd::complete;
}

}  // namespace capstan
