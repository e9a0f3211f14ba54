#include "tests/cli/support/ranks.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace capstan::testing {
namespace {

std::string find_mpirun() {
  if (const char* const given = std::getenv("CAPSTAN_MPIRUN")) return given;
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder + "/mpirun").c_str(), X_OK) == 0) return folder + "/mpirun";
  return "";
}

/// Open MPI asks root for its consent, and for each process a core of its own; its Ctrl-C leaves a second to save.
void allow_here() {
  for (const char* const name :
       {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"})
    setenv(name, "1", 0);
  setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 0);
}

}  // namespace

std::optional<std::string> no_mpi() {
  if (find_mpirun().empty()) return "there is no mpirun (package openmpi-bin)";
  const auto plugin = fs::path(program_path()).parent_path() / "libcapstan_mpi.so";
  if (std::getenv("CAPSTAN_MPI_PLUGIN") == nullptr && !fs::exists(plugin))
    return "built without MPI (package libopenmpi-dev)";
  return std::nullopt;
}

namespace {

/// What mpirun is told for each program: under the address sanitizer, ranks do not look for leaks, since Open MPI keeps
/// memory to the end.
Words launch_options(int ranks) {
#ifdef __SANITIZE_ADDRESS__
  return {"-x", "LSAN_OPTIONS=detect_leaks=0", "-n", std::to_string(ranks)};
#else
  return {"-n", std::to_string(ranks)};
#endif
}

}  // namespace

Process::Command mpirun(int ranks, const Words& arguments) {
  allow_here();
  return {Words{find_mpirun()} + launch_options(ranks) + Words{program_path()} + arguments};
}

Process::Command mpirun_each(const std::vector<Words>& commands) {
  allow_here();
  Words words{find_mpirun()};
  for (const Words& command : commands) {
    if (words.size() > 1) words.emplace_back(":");
    words = words + launch_options(1) + command;
  }
  return {words};
}

Outcome run(const Workplace& place, const Process::Command& command, const std::string& input) {
  return Process(place, command, input).wait(std::chrono::seconds(120));
}

std::vector<pid_t> processes_of(const Process& job) {
  std::vector<pid_t> processes;
  for (const std::string& line : lines_of(job.errors())) {
    const std::string begin = "  rank " + std::to_string(processes.size()) + " (process ";
    const size_t at = line.find(begin);
    if (at != std::string::npos) processes.push_back(std::stoi(line.substr(at + begin.size())));
  }
  return processes;
}

}  // namespace capstan::testing
