// Text from a language model, token by token: for `capstan generate`, pairs and reports (run/predictions) and the
// sessions of serve/. A text depends on model, prompt, options and seed alone, to the bit, whatever is written beside
// it: tests/models/test_generate.cpp, tests/serve/test_company.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/generation/sampling.hpp"
#include "models/model.hpp"
#include "models/stack.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Continues `prompt`, token by token. A model with a position limit goes on in further windows (window_begin()) or,
/// with `slide` off, stops at the end of the first one with GenerateEnd::window. After max_tokens, only the stop token
/// is taken. Throws Error for an empty prompt, a token outside the vocabulary, a prompt longer than the window when it
/// may not slide, and logits that are not finite.
Generated generate(const Model& model, const std::vector<int32_t>& prompt, const GenerateOptions& options = {});
/// Continues several prompts of one length together, so that each weight is read once per step for all of them. Each
/// result has the same bits as generate() of its prompt alone. Throws std::invalid_argument for prompts of different
/// lengths.
std::vector<Generated> generate_together(const Model& model, const std::vector<Prompt>& prompts,
                                         const GenerateOptions& options);

}  // namespace capstan::CAPSTAN_PRECISION
