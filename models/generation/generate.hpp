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

// Beam search: the likeliest completions of a prompt.

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

// Decode states as bytes, with which another process can go on writing a text.

/// Sequence `row` of a state as bytes: a format number, position and elements, a hash. `identity` names the weights
/// that the state belongs to; `more` is any text that set_state() gives back. Little-endian.
std::string state_bytes(DecodeState& state, int64_t row, std::string_view identity, std::string_view more);
/// Sequence `row` becomes the one of which state_bytes() made `bytes`. Throws Error, and leaves the sequence half set,
/// for bytes of another format, identity or form, and for damaged ones.
std::string set_state(DecodeState& state, int64_t row, std::string_view bytes, std::string_view identity);
/// Bytes that one sequence takes after `position` tokens.
int64_t bytes_per_sequence(const DecodeState& state, int64_t position);

}  // namespace capstan::CAPSTAN_PRECISION
