// Power is lost at every moment of a command, and comes back to every state of the disk that this moment allows.
//   scripts/attack.sh power [STATES PER KIND] [SEED]     CAPSTAN_ATTACK_ONLY=kind: one kind of run
#include <doctest/doctest.h>

#include "tests/faults/power_loss.hpp"

namespace capstan::testing {
namespace {

TEST_CASE("loss of power at any moment: the same command ends with the same bits, nothing synced is lost") {
  const Extent attack = extent(150);
  std::vector<Kind> kinds;
  for (const Kind& kind : chosen(training_kinds()))
    if (attack.count > 1000 || kind.name == "cached" || kind.name == "ngrams" || kind.name == "often") kinds.push_back(kind);
  for (const Kind& kind : kinds) {
    const PowerLosses losses = lose_power(kind, static_cast<size_t>(attack.count), attack.seed);
    MESSAGE(kind.name, ": ", losses.entries, " changes and syncs, ", losses.states, " states of the disk, ", losses.tried,
            " tried");
  }
}

}  // namespace
}  // namespace capstan::testing
