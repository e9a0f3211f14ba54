// A profile as a table to be read.
#pragma once

#include <string>

#include "core/machine/profile.hpp"

namespace capstan {

/// What the machine can do, to judge the rows by: bytes per second of a triad, operations per second of an sgemm.
struct MachineRates {
  double bytes = 0, flops = 0;
};

/// A row per op and pass, the longest first, and what is outside any op last; then the step, which is their sum; then
/// how to read it. Times, bytes and operations are those of one step.
std::string to_text(const Profile& profile, const MachineRates& machine);

}  // namespace capstan
