// Beam search: the likeliest completions of a prompt, for pairs (run/predictions). tests/models/test_beam_search.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "models/generation/sampling.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// One completion of a prompt.
struct Hypothesis {
  std::vector<int32_t> tokens;  // the new ones
  double log_probability = 0;   // ln p of the new tokens and, if finished, the stop token
  double score = 0;             // log_probability / n^length_penalty, by which hypotheses are compared
  bool finished = false;        // ended with the stop token, or at max_tokens where that is likeliest next
};

/// Beam search (Sutskever et al. 2014, section 3.2): every step extends options.beam texts by all tokens and keeps as
/// many of the likeliest; a text ends with the stop token, which must be given and counts as one of its n tokens. The
/// text that always takes the likeliest token is followed in any case, so that the best result never scores less than
/// it. Ends when no open text can come to a better score than the results that there are. A text of max_tokens is
/// finished if the stop token is what is likeliest after it. Returns up to `beam` different texts, the best first. A
/// model with a position limit stops there. Throws Error and std::invalid_argument as generate() does.
std::vector<Hypothesis> beam_search(const Model& model, const std::vector<int32_t>& prompt,
                                    const GenerateOptions& options);

}  // namespace capstan::CAPSTAN_PRECISION
