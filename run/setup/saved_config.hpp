// The configuration that a run has written, by this version or an earlier one (run/yaml/moved_keys.hpp).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "run/setup/run_config.hpp"

namespace capstan {

/// config.yaml of a run's folder, with overrides ("path.to.key=value"). Throws ConfigError,
/// and NewerFile if a newer version made the run.
RunConfig load_run_config(const std::filesystem::path& folder, const std::vector<std::string>& overrides = {});

/// The model's part of it, as a checkpoint recorded it.
TaskConfig saved_model(const std::string& text);

/// Logs the first of the notes, once: runs of one version all have the same to say.
void log_translations(const std::vector<std::string>& notes);

}  // namespace capstan
