// Power is lost at every moment of a command, and comes back to every state of the disk that this moment allows.
//   scripts/attack.sh power [STATES PER KIND] [SEED]     CAPSTAN_ATTACK_ONLY=kind: one kind of run
#include <doctest/doctest.h>

#include "tests/faults/power_loss.hpp"
#include "tests/faults/traced_process.hpp"

namespace capstan::testing {

TEST_CASE("loss of power at any moment: the same command ends with the same bits, nothing synced is lost") {
  if (!tracing_problem().empty()) {
    MESSAGE("skipped: " << tracing_problem());
    return;
  }
  const Extent attack = extent(150);
  std::vector<Kind> kinds =
      chosen({kind_called("cached"), kind_called("ngrams"), kind_called("often"), kind_called("stalled")});
  for (const Kind& kind : kinds) {
    const PowerLosses losses = lose_power(kind, static_cast<size_t>(attack.count), attack.seed);
    MESSAGE(kind.name, ": ", losses.entries, " changes and syncs, ", losses.states, " states of the disk, ",
            losses.tried, " tried");
  }
}

}  // namespace capstan::testing
