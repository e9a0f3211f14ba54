// What a language model reads of a text before it predicts. tests/cli/runs/test_predictions.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "run/setup/saved_run.hpp"

namespace capstan {

/// The tokens that a language model reads before those that it predicts: the start token, where the data have one, the
/// text and, of pairs, whose text is the source (cut as in training), the separator. `place` is named by errors.
std::vector<int32_t> prompt_of(const SavedRun& run, std::string_view text, const std::string& place);

}  // namespace capstan
