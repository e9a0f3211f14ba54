// The weights of a run, for all that uses a model. tests/train/test_damaged_runs.cpp, tests/cli/runs/test_bad_runs.cpp.
#pragma once

#include <filesystem>

#include "core/io/safetensors.hpp"

namespace capstan {

/// Opens a model: `where` may be a run folder (its best checkpoint; its last if the run has no best one), a
/// checkpoint's folder, or a file. Throws Error when there is none, and when it is absent or damaged, naming the
/// complete checkpoints.
SafetensorsFile open_model(const std::filesystem::path& where);

}  // namespace capstan
