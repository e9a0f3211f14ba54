// Which tokens of a batch a masked language model has to predict, and what it reads in their place. Evaluations of all
// runs hide the same tokens, so what is drawn cannot change: tests/models/test_masking.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "core/array/batch.hpp"
#include "core/array/segments.hpp"
#include "core/base/random.hpp"

namespace capstan {

/// Which tokens a masked language model has to predict, and what it reads in their place (Devlin et al. 2019, section
/// 3.1). Shares are between 0 and 1.
struct MaskingConfig {
  double share = 0.15;              // of the tokens that are chosen
  double mask = 0.8, random = 0.1;  // of these, read as the mask token and as a random one; the others stay
};
/// A batch with hidden tokens, their places, and the tokens that belong there.
struct MaskedTokens {
  Ids tokens;                    // (B, T): what the model reads
  std::vector<int32_t> places;   // chosen tokens in (B T), ascending
  std::vector<int32_t> targets;  // original ids
};

/// Chooses a share of the tokens. Of those chosen, a share becomes the mask token, a share a random one. Every draw is
/// a pure function of (key, example, position in the row, step), so that threads, padding after the text and
/// micro-batches change nothing; in evaluation of (example, position) alone, so that all runs are judged by the same
/// blanks.
class Masking {
 public:
  /// Tokens [0, maskable) can be chosen, and drawn at random; `mask` is the id of the mask token.
  struct Tokens {
    int64_t maskable;
    int32_t mask;
  };
  Masking(const MaskingConfig& config, const RandomKey& key, const Tokens& tokens);

  const MaskingConfig& config() const { return config_; }
  const Tokens& tokens() const { return tokens_; }
  /// A token is not chosen where the batch has a label for every token and this one's is ignored: such tokens are
  /// context.
  MaskedTokens apply(const Batch& batch, const Segments& segments, bool training, uint64_t step) const;

 private:
  MaskingConfig config_;
  RandomKey training_key_, evaluation_key_;
  Tokens tokens_;
};

}  // namespace capstan
