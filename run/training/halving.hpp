// Successive halving: which of many configurations is the best, in a given time (Jamieson & Talwalkar 2016; every rung
// keeps a third, as in Li et al. 2018). All are tried with a small share of the training, the best third of them with
// three times as much, and so on up to the whole. It knows nothing of runs: autotune.cpp trains, and
// tests/run/test_halving.cpp gives it candidates of known cost and time.
#pragma once

#include <cstdint>
#include <functional>

namespace capstan {

/// A candidate trained with 1 / divisor of the steps or examples.
struct Trial {
  size_t candidate = 0;
  int64_t divisor = 1;
};

/// What a trial returns. One that is not done is left out of its rung, but its seconds count.
struct TrialOutcome {
  bool done = true;  // false: it failed, or was stopped since the time was over
  double cost = 0;   // what is compared: the smaller, the better; NAN is the worst
  double seconds = 0;
};

/// How the search begins: so many candidates, drawn at random if they are not all, with 1 / divisor of the training.
struct HalvingPlan {
  size_t candidates = 0;
  int64_t divisor = 1;
};

/// The least division with which all candidates fit into the time: 1, 3, 9 or 27. If none is enough, 9, and as many
/// candidates as then fit. full_seconds: of one trial with the whole training.
HalvingPlan plan_halving(size_t candidates, double full_seconds, double seconds);

using TryOut = std::function<TrialOutcome(const Trial& trial, double seconds_left)>;

/// What the caller of a search is asked and told; either may be empty.
struct HalvingEvents {
  std::function<bool()> stop;                            // asked before every trial
  std::function<void(const HalvingPlan& rung)> on_rung;  // before the trials of a rung
};

enum class SearchEnd {
  complete,  // every candidate was tried
  time,      // some were not, or not as far as they could have come, for lack of time
  stopped,   // `stop` returned true
  failed     // candidate 0 has no result
};

/// Candidate 0 is tried as a whole before all others. `seconds` is the time for all trials, as their outcomes give it;
/// a trial that is expected to take longer than is left is not begun. Candidates are drawn by `seed`.
SearchEnd search_by_halving(size_t candidates, double seconds, uint64_t seed, const TryOut& try_out,
                            const HalvingEvents& events);

}  // namespace capstan
