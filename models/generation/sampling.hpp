// How texts are written: how a token is chosen, and when a text ends (generate.cpp has the code). For WrittenText and
// beam search; the options come from run/predictions and serve. A seed must give the same text in every version:
// tests/models/test_generate.cpp.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "models/model.hpp"

namespace capstan {

/// How a token is chosen from its logits.
struct SamplingConfig {
  double temperature = 1;         // divides the logits, from 0; 0 = always the likeliest token
  int64_t top_k = 0;              // sample from this many of the likeliest tokens; 0 = all
  double top_p = 1;               // sample from the likeliest tokens that together have this probability; 1 = all
  double repetition_penalty = 1;  // above 0: makes tokens that have already occurred less likely; 1 = off
  int64_t seed = 1;               // the same seed gives the same text
  double min_p = 0;               // only tokens with at least this share of the likeliest one's probability; 0 = all
  // As OpenAI's API has them: taken from a token's logit, for each time that the text (not the prompt) has it, and once
  // if it has it at all; and added to the logits of tokens.
  double frequency_penalty = 0, presence_penalty = 0;
  std::map<int32_t, double> logit_bias = {};
};

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// Chooses tokens. Draw n is a pure function of the seed, the stream and n. It applies in this order: repetition
/// penalty p (logits of tokens seen are divided by p where positive, multiplied by p elsewhere; Keskar et al. 2019,
/// arXiv 1909.05858), penalties of frequency and presence, biases, temperature, top-k, top-p (the fewest likeliest
/// tokens whose probability reaches p; Holtzman et al. 2020, arXiv 1904.09751), min-p (Nguyen et al. 2024, arXiv
/// 2407.01082). Among equal logits the lower id comes first. Throws std::invalid_argument for settings out of range.
class Sampler {
 public:
  /// `banned` tokens are never chosen; at least one must be left.
  Sampler(const SamplingConfig& config, int64_t vocabulary, const std::vector<int32_t>& banned = {},
          int64_t stream = 0);

  /// Counts `token` of the prompt as seen, for the repetition penalty.
  void see(int32_t token);
  /// Counts `token` as seen and written.
  void write(int32_t token);
  /// The next token. logits: V elements. Throws NotFinite for logits that are not finite.
  int32_t choose(const Array& logits);

 private:
  std::vector<double> penalised(const Array& logits) const;

  SamplingConfig config_;
  RandomStream random_;
  std::vector<bool> seen_;
  std::map<int32_t, int64_t> written_;  // how often, by token
  std::vector<int32_t> banned_;
};

/// ln sum_v exp(logits_v): a logit minus this sum is the ln of its token's probability. NaN or infinite where a logit
/// is.
double log_total(const real* logits, int64_t vocabulary);
/// ln of the probability that the model gives a token.  logits: V elements.
double log_probability(const Array& logits, int32_t token);
/// The `count` likeliest tokens, or all where there are fewer, the likeliest first; among equal logits the lower id.
std::vector<int32_t> likeliest_tokens(const real* logits, int64_t vocabulary, int64_t count);

/// How a text is written: choice of tokens or beam search, its end, and what the caller is told.
struct GenerateOptions {
  SamplingConfig sampling = {};
  DecodeWeights weights = DecodeWeights::float32;  // bf16: less to read for every token
  int64_t max_tokens = 256;                        // new tokens at most, before a stop token; < 0: no limit
  std::optional<int32_t> stop_token = {};          // ends the text and is not part of it
  bool slide = true;                               // past the longest position: continue in a further window
  std::vector<int32_t> banned = {};                // tokens that are never chosen, such as the unknown word
  bool log_probabilities = false;                  // fill Generated::log_probability
  int64_t beam = 1;                                // of beam search: texts that are followed at a time
  double length_penalty = 0;  // of beam search: a text of n tokens has the score ln p / n^length_penalty
  /// Called with every new token and the index of its prompt; false ends this text after it.
  std::function<bool(int64_t prompt, int32_t token)> on_token = {};
  std::function<void()> on_slide = {};  // called once, at the first slide
};

/// Why a text ended: after max_tokens, at the stop token, because on_token() said so, or at the end of the window.
enum class GenerateEnd { max_tokens, stop_token, callback, window };

/// A text that was written.
struct Generated {
  std::vector<int32_t> tokens;  // without the prompt's
  GenerateEnd end = GenerateEnd::max_tokens;
  bool slid = false;           // the text went on in a further window
  double log_probability = 0;  // of the new tokens, a stop token included
};

/// The beginning of a text, or the place where an earlier text goes on.
struct Prompt {
  std::vector<int32_t> tokens;
  int64_t stream = 0;  // random stream: another stream gives the same prompt another text
  int64_t begin = 0;   // of a text that goes on: how many of its tokens precede `tokens`, which are its window
  int64_t read = 0;    // of a text that goes on: how many of `tokens` its decode state has read
};

/// The first token of the window that predicts the successor of token `last` of a text. A model without a
/// position limit reads all of the text. Other models read windows of up to `limit` tokens. The first begins with token
/// 0. The token after a full window begins another with the tokens before it, limit / 2 in all: with 32 positions, 15
/// tokens are read again.
int64_t window_begin(int64_t last, std::optional<int64_t> limit);

}  // namespace capstan::CAPSTAN_PRECISION
