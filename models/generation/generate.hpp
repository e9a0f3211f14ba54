// Text from a language model, token by token.
#pragma once

#include <vector>

#include "models/generation/sampling.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Continues `prompt`, token by token, each from its window, or stops at the end of the first one with
/// GenerateEnd::window. After max_tokens, only the stop token is taken. Throws Error for an empty prompt, a token
/// outside the vocabulary, a prompt longer than the window when it may not slide, and logits that are not finite.
Generated generate(const Model& model, const std::vector<int32_t>& prompt, const GenerateOptions& options = {});
/// Continues several prompts of one length together: every weight is read once for a token of each. Each result is, to
/// the bit, that of its prompt alone. Throws std::invalid_argument for prompts of different lengths.
std::vector<Generated> generate_together(const Model& model, const std::vector<Prompt>& prompts,
                                         const GenerateOptions& options);

}  // namespace capstan::CAPSTAN_PRECISION
