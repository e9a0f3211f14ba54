// Links of a run's checkpoints that lead to a whole checkpoint, but not to the one that the run means. What a kill
// leaves, a run that was resumed from an earlier checkpoint, and runs of earlier versions are not told of.
// tests/cli/test_bad_runs.cpp.
#pragma once

#include <string>

#include "train/checkpoints/checkpoint.hpp"

namespace capstan {

/// "runs/lm/checkpoints/best points to step-4, though step-6 is the best by the state of step-6": `best` names a
/// checkpoint that is worse than the best one of which the state of `last` knows. Empty where it does not, and where
/// either state cannot be read.
std::string wrong_best(const Checkpoints& checkpoints);
/// The remedy, for messages.
constexpr const char* how_best_is_corrected = "capstan train with the run's configuration corrects the link";

/// "runs/lm/checkpoints/last points to step-4, though step-6 is whole and goes on from it ...": as when somebody has
/// changed the link, or a process was killed between writing the later checkpoint and making the link, after which the
/// run repeats these steps. metrics.jsonl beside the checkpoints says that both are of one history. Empty where there
/// is no such checkpoint.
std::string passed_over(const Checkpoints& checkpoints);

}  // namespace capstan
