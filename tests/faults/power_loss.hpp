// Loss of power at every moment of a command.
#pragma once

#include "tests/faults/kinds.hpp"

namespace capstan::testing {

struct PowerLosses {
  size_t entries = 0;  // changes and syncs of the unbroken command
  size_t states = 0;   // contents of the folder that some prefix allows, each counted once
  size_t tried = 0;    // states from which the command was run again
};

/// Records an unbroken run of the command, and runs the command again in every state of the folder that a loss of power
/// may leave behind; with more than `most` of them, in that many drawn at random. Checks that it comes to the same
/// bits; that no checkpoint which was published and synced is lost; that all is on the disk when the command has ended.
PowerLosses lose_power(const Kind& kind, size_t most, uint32_t seed);

}  // namespace capstan::testing
