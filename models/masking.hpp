// Which tokens of a batch a masked language model has to predict, and what it reads in their place. Evaluations of all
// runs hide the same tokens, so what is drawn cannot change: tests/models/test_masking.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "core/array/batch.hpp"
#include "core/array/segments.hpp"
#include "core/base/random.hpp"
#include "core/config/schema.hpp"

namespace capstan {

/// Which tokens a masked language model has to predict, and what it reads in their place (Devlin et al. 2019, section
/// 3.1). Shares are between 0 and 1.
struct MaskingConfig {
  double share = 0.15;
  double mask = 0.8, random = 0.1;
  bool whole_words = false;
};
template <class Fields>
void describe(Fields& f, MaskingConfig& c) {
  f("share", c.share, between(0.001, 1), "share of the tokens that are chosen, to be predicted");
  f("mask", c.mask, between(0, 1), "share of the chosen tokens that the model reads as the mask token");
  f("random", c.random, between(0, 1), "share that it reads as a random token; the others stay as they are");
  f("whole_words", c.whole_words, any(), "choose words instead of tokens: runs of letters and digits");
}
inline void validate(const MaskingConfig& c, Problems& problems) {
  if (c.mask + c.random > 1) problems.add("random", "mask and random must not be more than 1 together");
}

/// For each token of the vocabulary: whether its text begins, and whether it ends, with a letter or digit. A token that
/// ends so and a next one that begins so belong to one word.
struct WordEdges {
  std::vector<bool> begins, ends;
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
  /// Must be called if whole words are masked; `edges` has an entry for every maskable token.
  void set_words(WordEdges edges);
  bool needs_words() const { return config_.whole_words && words_.begins.empty(); }

  /// A token is not chosen where the batch has a label for every token and this one's is ignored: such tokens are
  /// context. Throws std::logic_error for whole words before set_words().
  MaskedTokens apply(const Batch& batch, const Segments& segments, bool training, uint64_t step) const;

 private:
  bool same_word(const Batch& batch, const Segments& segments, int64_t row, int64_t t) const;

  MaskingConfig config_;
  RandomKey training_key_, evaluation_key_;
  Tokens tokens_;
  WordEdges words_;
};

}  // namespace capstan
