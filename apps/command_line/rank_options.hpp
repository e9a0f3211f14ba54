// Commands that run as several processes: `mpirun -n 4 capstan train ...`. tests/cli/training/test_ranks.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "train/ranks/launch.hpp"

namespace capstan {

/// --mpi and --rank-timeout.
void add_rank_options(CLI::App& command, RankOptions& options);

/// Runs `body` in every rank of the job and returns its exit code, which is the same for all. When it fails in one
/// rank, that one says why and ends all of them; an error that all have in common is reported by rank 0. Ranks other
/// than 0 are silent otherwise.
int run_on_ranks(const RankOptions& options, const std::function<int(Communicator& ranks)>& body);

}  // namespace capstan
