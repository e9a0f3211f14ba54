// Finding out whether this process is one of several that were started together, and connecting them: for `capstan
// train` and programs that train by run/. tests/cli/training/test_ranks.cpp, and long_slurm.sh for srun.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "train/ranks/communicator.hpp"

namespace capstan {

/// What a launcher tells a process by its environment.
struct Launch {
  int64_t processes = 1;
  std::string told_by;  // the variable that said so
};
/// The launch by mpirun (Open MPI; MPICH and others by PMI) or srun; nothing without a launcher.
std::optional<Launch> find_launch();

struct RankOptions {
  bool mpi = false;     // open MPI even if no launcher is found
  double timeout = 60;  // see Communicator
};
/// Collective where there are several processes: opens the plugin libcapstan_mpi.so, which is next to the program, in
/// its ../lib/capstan, or where CAPSTAN_MPI_PLUGIN says. One process gets a communicator of size 1 without MPI. Throws
/// Error when the plugin cannot be loaded, and when its MPI knows of fewer processes than the launcher.
std::unique_ptr<Communicator> open_ranks(const RankOptions& options);

}  // namespace capstan
