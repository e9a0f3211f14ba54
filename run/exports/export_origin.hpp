// Which run an export is of.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "run/setup/run_model.hpp"

namespace capstan {

/// The number of the form in which models are exported. It grows when what reads an earlier export cannot read this.
constexpr int64_t export_format = 1;

/// Format, version, run, step, and fingerprints of weights, tokenizer and data.
nlohmann::json export_origin(const SavedRun& run);

}  // namespace capstan
