// A profile as a text table.
#pragma once

#include <string>

#include "core/machine/profile.hpp"

namespace capstan {

/// The limits of the machine that rows are compared with:
/// bytes per second of a triad, operations per second of an sgemm.
struct MachineRates {
  double bytes = 0, flops = 0;
};

/// A row per op and pass, the slowest first and time outside any op last; then the step, which is their sum; then a
/// legend. Times, bytes and operations are per step.
std::string to_text(const Profile& profile, const MachineRates& machine);

}  // namespace capstan
