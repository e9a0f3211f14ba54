// Compares the ranks' configurations, data and machines, as lines of text. All ranks must call the same collective
// functions in the same order: tests/cli/training/test_ranks.cpp.
#include "run/setup/rank_agreement.hpp"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "core/io/file.hpp"
#include "core/io/hash.hpp"
#include "core/io/log.hpp"
#include "core/machine/parallel.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/run_data.hpp"
#include "train/ranks/agreement.hpp"

namespace capstan {
namespace {

/// The CPUs that this process may use, as text.
std::string allowed_cpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return "";
  std::string text;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) text += std::to_string(cpu) + ",";
  return text;
}

/// "vendor, family 26, model 2": libraries choose their kernels by it.
std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string text;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    for (const char* const name : {"vendor_id", "cpu family", "model\t"})
      if (line.rfind(name, 0) == 0) text += (text.empty() ? "" : ", ") + line.substr(colon + 2);
  }
  return text;
}

/// What the bits of a sum or a product depend on. Portable kernels give the same on every model of CPU.
Settings kernels_in_use(const RunConfig& config) {
  Settings facts = this_machine(config.train);
  if (config.train.kernels == KernelChoice::portable) return facts;
  facts["CPU (vendor, family, model)"] = cpu_model();
  return facts;
}

/// The lines "key: value" of a text, as facts.
Settings lines_as_facts(const std::string& name, const std::string& text) {
  Settings facts;
  std::istringstream lines(text);
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const size_t colon = line.find(": ");
    if (colon == std::string::npos)
      facts[fmt::format("{} (line {})", name, number)] = line;
    else
      facts[fmt::format("{}: {}", name, line.substr(0, colon))] = line.substr(colon + 2);
  }
  return facts;
}

bool makes_cache(const RunConfig& config) {
  const auto* const text = std::get_if<TextSourceConfig>(&config.data);
  return text != nullptr && text->cache != "";  // null: large texts are kept
}

}  // namespace

int threads_of_rank(Communicator& ranks, int64_t threads) {
  if (threads > 0 || ranks.size() == 1) return static_cast<int>(threads);
  const std::vector<std::string> cpus = ranks.gather(allowed_cpus());
  const std::string& own = cpus[static_cast<size_t>(ranks.rank())];
  const auto sharing = std::count_if(ranks.neighbours().begin(), ranks.neighbours().end(),
                                     [&](int rank) { return cpus[static_cast<size_t>(rank)] == own; });
  set_threads(0);
  return std::max(1, capstan::threads() / static_cast<int>(sharing));
}

void require_same_program(Communicator& ranks, const RunConfig& config, bool mixed_kernels) {
  if (ranks.size() == 1) return;
  require_same(ranks, "the ranks run different programs", {{"the program", hash_hex(read_file("/proc/self/exe"))}},
               "install the same one on all machines");
  require_same(ranks, "the ranks have different configurations", settings_of(config),
               "give all of them the same files and options");
  require_same_kernels(ranks, config, mixed_kernels);
}

void require_same_kernels(Communicator& ranks, const RunConfig& config, bool mixed_kernels) {
  if (ranks.size() == 1) return;
  const std::vector<std::string> kernels = disagreements(ranks, kernels_in_use(config));
  if (kernels.empty()) return;
  const std::string text = join_first(kernels, "; ");
  if (!mixed_kernels)
    throw Error(
        fmt::format("the ranks compute with different kernels, which round differently: {}; use machines of one "
                    "kind, or give all of them the same CAPSTAN_CPU and OPENBLAS_CORETYPE; with "
                    "--allow-mixed-kernels they train all the same, but results depend on which rank computes what",
                    text));
  log_warning(fmt::format(
      "the ranks compute with different kernels, so that results depend on which of them computes what: {}", text));
}

void require_same_data(Communicator& ranks, const Identity& identity) {
  if (ranks.size() == 1) return;
  Settings facts;
  for (const auto& [name, text] : identity)
    for (const auto& [key, value] : lines_as_facts(name, text)) facts[key] = value;
  require_same(ranks, "the ranks have different data", facts, "give all machines the same files");
}

std::unique_ptr<DataSource> open_data_in_turn(Communicator& ranks, const RunConfig& config) {
  if (ranks.size() == 1) return open_data(config);
  const Communicator::LongTimeout reading(ranks);
  const bool in_turn = makes_cache(config), leads = ranks.neighbours().front() == ranks.rank();
  std::unique_ptr<DataSource> data;
  if (leads || !in_turn) data = open_data(config);
  if (in_turn) ranks.barrier();
  if (data == nullptr) data = open_data(config);
  ranks.barrier();
  return data;
}

}  // namespace capstan
