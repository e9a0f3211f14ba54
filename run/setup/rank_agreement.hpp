// What the ranks of a job agree on before they train. train_run() calls it. All ranks must call a collective function
// in the same order, whatever they find, or the others wait for ever. tests/cli/training/test_ranks.cpp checks the
// refusals.
#pragma once

#include "data/batches/data_source.hpp"
#include "run/setup/run_config.hpp"
#include "train/checkpoints/run_state.hpp"
#include "train/ranks/communicator.hpp"

namespace capstan {

/// Collective: the threads for this rank: `threads` of the configuration or, where that is 0, its share of the cores
/// that it has in common with other ranks of its machine.
int threads_of_rank(Communicator& ranks, int64_t threads);

/// Collective: throws Error, naming two ranks, unless all run the same program with the same configuration and the same
/// kernels. `mixed_kernels`: the last is a warning.
void require_same_program(Communicator& ranks, const RunConfig& config, bool mixed_kernels);
/// Collective: throws Error, or with `mixed_kernels` warns, unless all ranks compute with the same kernels: for a
/// precision that was chosen after require_same_program().
void require_same_kernels(Communicator& ranks, const RunConfig& config, bool mixed_kernels);
/// Collective: throws Error, naming two ranks, unless all have the same data.
void require_same_data(Communicator& ranks, const Identity& identity);

/// Collective. Where the data make a token cache, one rank of each machine opens them first, then others find it.
std::unique_ptr<DataSource> open_data_in_turn(Communicator& ranks, const RunConfig& config);

}  // namespace capstan
