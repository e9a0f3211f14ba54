// What train.precision: auto leaves open. settle() chooses once, before the first step, by steps on trial; the choice
// is written to config.yaml, because results depend on it. tests/run/test_precision.cpp and
// tests/cli/training/test_precision.cpp hold the choice.
#pragma once

#include <functional>
#include <string>

#include "run/setup/run_config.hpp"
#include "run/training/pilot.hpp"
#include "train/ranks/communicator.hpp"

namespace capstan {

struct PrecisionChoice {
  Precision precision = Precision::float32;
  std::string line;  // for the log
};
/// bf16 where a step takes at most nine tenths of the time in it.
PrecisionChoice choose_precision(const PrecisionTimes& seconds);
/// The choice for a run whose sizes are known, by `times` of steps; float32, unmeasured, where bf16 has an obstacle.
PrecisionChoice choose_precision(const RunConfig& config, const std::function<PrecisionTimes()>& times);

/// Collective: the precision that rank 0 has chosen. Throws Error naming a rank that cannot train in it.
Precision agreed_precision(Communicator& ranks, Precision chosen);

}  // namespace capstan
