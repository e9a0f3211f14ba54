// Texts handed on in batches. A text that cannot be used must not keep those in front of it from being computed:
// tests/cli/runs/test_commands.cpp ("predict answers for ...").
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "run/inputs/text_input.hpp"

namespace capstan {

/// Calls `take` with the texts in batches of `size`, or smaller ones where the input is a pipe that has no more at the
/// moment. Where a text causes an error, the texts in front of it are taken first.
void for_each_batch(TextInput& texts, size_t size, const std::function<void(const std::vector<InputText>&)>& take);

}  // namespace capstan
