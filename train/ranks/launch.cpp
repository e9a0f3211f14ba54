// Reads the environment of mpirun and srun, and loads the plugin that knows MPI by dlopen(), so that the program runs
// where no MPI is installed. A damaged plugin must be an error, not a crash: tests/cli/training/test_ranks.cpp.
#include "train/ranks/launch.hpp"

#include <dlfcn.h>
#include <elf.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "core/io/regular_file.hpp"
#include "core/strings/strings.hpp"
#include "train/ranks/transport.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

constexpr const char* plugin_variable = "CAPSTAN_MPI_PLUGIN";
constexpr const char* plugin_file = "libcapstan_mpi.so";

/// Where the plugin may be, in the order in which it is looked for.
std::vector<std::string> plugin_places() {
  if (const char* const given = std::getenv(plugin_variable); given != nullptr && *given != '\0') return {given};
  std::error_code unknown;
  const fs::path folder = fs::read_symlink("/proc/self/exe", unknown).parent_path();
  return {(folder / plugin_file).string(), (folder.parent_path() / "lib/capstan" / plugin_file).string()};
}

/// Why a file is no whole library; empty if it is one, or is not there. dlopen() maps a file without looking at its
/// size, and a read after its end would end the process by SIGBUS.
std::string library_problem(const std::string& path) {
  std::error_code unknown;
  if (!fs::exists(path, unknown)) return "";
  Elf64_Ehdr header{};
  RegularFile file(path);
  const bool whole = file.read(&header, sizeof(header)) == sizeof(header) &&
                     std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                     header.e_shoff <= file.size() &&  // the table of sections is the last part of a library
                     uint64_t{header.e_shnum} * header.e_shentsize <= file.size() - header.e_shoff;
  return whole ? "" : path + ": the file is cut short, or no library; install Capstan again";
}

/// The plugin stays loaded until the process ends: libraries of MPI do not remove their handlers.
std::unique_ptr<Transport> open_plugin(double timeout) {
  std::vector<std::string> problems;
  void* library = nullptr;
  for (const std::string& place : plugin_places()) {
    if (std::string problem = library_problem(place); !problem.empty()) {
      problems.push_back(std::move(problem));
      continue;
    }
    // Open MPI's own plugins look for its symbols among the global ones.
    library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library != nullptr) break;
    const char* const problem = ::dlerror();
    problems.emplace_back(problem != nullptr ? problem : place + " cannot be loaded");
  }
  if (library == nullptr)
    throw Error(
        fmt::format("MPI is needed to train with several processes, but its plugin cannot be loaded: {}. Install an "
                    "MPI library (for "
                    "the Debian package: libopenmpi3) or build Capstan where mpicxx is installed (libopenmpi-dev); {} "
                    "names a plugin",
                    join(problems, "; "), plugin_variable));
  const auto version = reinterpret_cast<TransportVersion>(::dlsym(library, transport_version_name));
  const auto open = reinterpret_cast<OpenTransport>(::dlsym(library, open_transport_name));
  if (version == nullptr || open == nullptr || version() != Transport::version)
    throw Error(fmt::format("{} belongs to another version of Capstan: use the one that was built with this program",
                            plugin_places().front()));
  char problem[512] = "";
  const Deadline start(0.75 * timeout,
                       "MPI does not start: another process of the job has ended, or the network is down; the same "
                       "command tries again (--rank-timeout sets the limit)");
  std::unique_ptr<Transport> transport(open(problem, sizeof(problem)));
  if (transport == nullptr) throw Error(problem);
  return transport;
}

}  // namespace

std::optional<Launch> find_launch() {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const char* const text = std::getenv(name);
    if (text == nullptr) continue;
    char* end = nullptr;
    const long long count = std::strtoll(text, &end, 10);
    if (end != text && *end == '\0' && count > 0) return Launch{count, name};
  }
  return std::nullopt;
}

std::unique_ptr<Communicator> open_ranks(const RankOptions& options) {
  const std::optional<Launch> launch = find_launch();
  if (!options.mpi && (!launch || launch->processes == 1)) return std::make_unique<Communicator>();
  std::unique_ptr<Transport> transport = open_plugin(options.timeout);
  if (launch && launch->processes != transport->size())
    throw Error(
        fmt::format("this is one of {} processes ({}), but {} knows of {}: the launcher belongs to another MPI than "
                    "Capstan's plugin. "
                    "Use its mpirun, with srun one of the types that `srun --mpi=list` shows (--mpi=pmix for Open MPI, "
                    "--mpi=pmi2 for "
                    "MPICH), or name the other plugin in {}",
                    launch->processes, launch->told_by, transport->library(), transport->size(), plugin_variable));
  return std::make_unique<Communicator>(std::move(transport), options.timeout);
}

}  // namespace capstan
