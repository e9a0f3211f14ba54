// `mpirun -n 3 capstan ...`, as a user starts it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/cli/support/program.hpp"

namespace capstan::testing {

/// Why no program can be started in several processes here; nothing where it can. CAPSTAN_MPIRUN names another mpirun
/// than that of the PATH, CAPSTAN_MPI_PLUGIN the plugin that belongs to it.
std::optional<std::string> no_mpi();

/// The command line of mpirun.
Process::Command mpirun(int ranks, const Words& arguments);
/// The same with a command of its own for each rank.
Process::Command mpirun_each(const std::vector<Words>& commands);

Outcome run(const Workplace& place, const Process::Command& command, const std::string& input = "");

/// The processes of a job, by rank, from the first lines of its log; empty while they are not there.
std::vector<pid_t> processes_of(const Process& job);

}  // namespace capstan::testing
