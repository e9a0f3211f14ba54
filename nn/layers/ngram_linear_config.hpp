// A linear classifier over the n-grams of a text: its configuration.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config/schema.hpp"

namespace capstan {

/// Of NgramLinear, nn/layers/ngram_linear.hpp, and of how it is solved, train/linear/fit_linear.hpp.
struct NgramLinearConfig {
  std::vector<int64_t> words, characters;  // lengths of n-grams; none of both: no such classifier
  bool text_ends = false;
  int64_t min_texts = 0;
  int64_t buckets = 0;
  int64_t folds = 5;

  bool used() const { return !words.empty() || !characters.empty(); }
};

template <class Fields>
void describe(Fields& f, NgramLinearConfig& c) {
  f("words", c.words, any(), "lengths of the n-grams of words, such as [1, 2] for words and pairs of words");
  f("characters", c.characters, any(),
    "lengths of the n-grams of characters within words, such as [2, 3, 4, 5]; the start and the end of a word count as "
    "characters");
  f("text_ends", c.text_ends, any(),
    "count the start and the end of a text as words in n-grams of two or more words, so that its first and last words "
    "are told from others");
  f("min_texts", c.min_texts, between(0, 1000000),
    "leave out n-grams that occur in fewer training texts than this; 0 = 1 if the training texts have fewer than 4 "
    "million n-grams in all, otherwise 2. The number chosen is written to config.yaml");
  f("buckets", c.buckets, between(0, 1 << 24),
    "number of rows in the table of n-grams, a power of two; 0 = four or more per n-gram of the training texts, within "
    "256 MB for all classes. The number chosen is written to config.yaml");
  f("folds", c.folds, between(2, 100),
    "parts of the training data for the cross-validation that chooses strength and weighting of the n-grams; with much "
    "data, only the first parts are held out in turn");
}

void validate(const NgramLinearConfig& config, Problems& problems);

}  // namespace capstan
