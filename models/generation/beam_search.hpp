// Beam search: the likeliest completions of a prompt, for pairs (run/predictions). tests/models/test_beam_search.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "models/model.hpp"

namespace capstan::CAPSTAN_PRECISION {

struct BeamOptions {
  int64_t width = 4;                 // texts that are followed at a time
  double length_penalty = 0;         // a text of n tokens has the score ln p / n^length_penalty; 0: its log probability
  int64_t max_tokens = 256;          // new tokens at most, before a stop token; > 0
  int32_t stop_token = 0;            // ends a text, is not part of it, and counts as one of its n tokens
  std::vector<int32_t> banned = {};  // tokens that are never written
  DecodeWeights weights = DecodeWeights::float32;
};

/// One completion of a prompt.
struct Hypothesis {
  std::vector<int32_t> tokens;  // the new ones
  double log_probability = 0;   // ln p of the new tokens and, if finished, the stop token
  double score = 0;             // log_probability / n^length_penalty, by which hypotheses are compared
  bool finished = false;        // ended with the stop token, or at max_tokens where that is likeliest next
};

/// Beam search (Sutskever et al. 2014, section 3.2): every step extends `width` texts by all tokens and keeps the
/// `width` likeliest results; a text ends with the stop token. The text that always takes the likeliest token is
/// followed in any case, so that the best result never scores less than it. Ends when no open text can come to a better
/// score than the results that there are. A text of max_tokens is finished if the stop token is what is likeliest after
/// it. Returns up to `width` different texts, the best first. A model with a position limit stops there. Throws Error
/// and std::invalid_argument as generate() does.
std::vector<Hypothesis> beam_search(const Model& model, const std::vector<int32_t>& prompt, const BeamOptions& options);

}  // namespace capstan::CAPSTAN_PRECISION
