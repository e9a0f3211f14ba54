#include "run/setup/saved_config.hpp"

#include <mutex>

#include "core/io/log.hpp"
#include "train/checkpoints/checkpoint.hpp"

namespace capstan {
namespace {

/// Throws NewerFile if a newer version saved the run.
void refuse_newer(const std::filesystem::path& folder) {
  try {
    if (const auto last = Checkpoints(folder / "checkpoints").last()) read_state(*last);
  } catch (const NewerFile&) {
    throw;
  } catch (const Error&) {  // the configuration is what the caller reports
  }
}

}  // namespace

void log_translations(const std::vector<std::string>& notes) {
  static std::once_flag logged;
  if (!notes.empty()) std::call_once(logged, [&] { log_info(notes.front()); });
}

RunConfig load_run_config(const std::filesystem::path& folder, const std::vector<std::string>& overrides) {
  try {
    ProblemList problems;
    const ConfigNode tree = load_tree(to_node(RunConfig{}), {(folder / "config.yaml").string()}, overrides, problems);
    log_translations(problems.notes());
    return read_config<RunConfig>(tree, problems);
  } catch (const ConfigError&) {
    refuse_newer(folder);
    throw;
  }
}

}  // namespace capstan
