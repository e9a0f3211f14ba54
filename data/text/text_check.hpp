// What may be wrong with text for language models although it can be read.
#pragma once

#include <vector>

#include "data/checks/report.hpp"
#include "data/text/text_loading.hpp"

namespace capstan {

/// What costs little, of a text in memory whose tokens are made.
std::vector<DataWarning> warnings_of(const SplitText& text, const TextSourceConfig& config, const TextData& data);

/// Reads and tokenises all of a text, large or small.
DataReport check_text(const TextSourceConfig& config, const LogLine& log);

}  // namespace capstan
