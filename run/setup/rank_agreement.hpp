// What the ranks of a job agree on before they train. train_run() calls it. All ranks must call a collective function
// in the same order, whatever they find, or the others wait for ever. tests/cli/test_ranks.cpp checks the refusals.
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
/// Collective: the last part of it, for a precision that was chosen since.
void require_same_kernels(Communicator& ranks, const RunConfig& config, bool mixed_kernels);
/// Collective: the same for what the data are.
void require_same_data(Communicator& ranks, const Identity& identity);

/// Collective. Where the data make a token cache, one rank of each machine opens them first, then others find it.
std::unique_ptr<DataSource> open_data_in_turn(Communicator& ranks, const RunConfig& config);

}  // namespace capstan
