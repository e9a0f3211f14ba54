// Whether a run without a checkpoint had one, for `capstan verify`: a run that was killed before its first save has
// none, and nothing of it is lost. tests/cli/runs/test_verify.cpp.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "run/setup/run_config.hpp"

namespace capstan {

/// What shows that checkpoints of a run were saved, in words, of a run that has none now; empty where nothing does.
/// `config`: the run's, if it can be read.
std::string sign_of_saves(const std::filesystem::path& folder, const std::optional<RunConfig>& config);

}  // namespace capstan
