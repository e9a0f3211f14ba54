// A view into a trained model: its position biases, and its weights for the words of an example text. reported_run.cpp
// fills it and page.cpp shows it. tests/run/test_model_view.cpp holds words and maps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/array/batch.hpp"
#include "data/batches/labelled_texts.hpp"
#include "run/setup/saved_run.hpp"

namespace capstan {

/// Words and the tokens that make them: tokens up to the next space form a word. Ids beyond the tokenizer's
/// vocabulary, which are between texts (the first) or between source and target, are separate words.
struct Words {
  std::vector<std::string> texts;  // by word
  std::vector<size_t> of_token;    // by token: the number of its word
};

/// The weights of source s (column) for target t (row), of the first positions. NAN: t does not see s.
struct WeightMap {
  size_t length = 0;
  std::vector<float> values;  // (length, length)
  float at(size_t t, size_t s) const { return values[t * length + s]; }
};

/// One kind of weights of a layer: a map per head, or a weight per word of the text and head, or both.
struct WeightsView {
  std::string name;  // "attention", "query pool"
  std::vector<WeightMap> maps;
  std::vector<std::vector<float>> words;  // (heads, words); the weights of a head add up to 1
};

struct LayerView {
  std::string name;  // "layer 1: aft-local"
  std::vector<WeightMap> position_bias;
  std::vector<WeightsView> weights;
};

struct ModelView {
  Words words;                    // of the example text
  std::vector<LayerView> layers;  // the first with something to show
};

/// The first row of a split: a batch (1, T).
Batch example_of(const DataSource& data, Split split);
/// A text given by the user as the model reads it, in the same form; of pairs a source. Throws Error when it is empty.
Batch example_of(const SavedRun& run, const std::string& text);

Words words_of(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens);

/// The first layers, heads and tokens, of which a page has room for some; without one only the position biases are
/// shown. What a token does not see, because it is later or of another document, has no value; the sources of pairs are
/// read as the model reads them.
ModelView view_of(const SavedRun& run, const std::optional<Batch>& example);

/// The n-grams of a class with the largest weights, the largest first.
struct ClassNgrams {
  std::string name;
  std::vector<std::pair<std::string, float>> ngrams;
};

/// A model stores hashes of n-grams, so their names are looked for in the training texts: each is the one that the
/// first texts with such a hash agree on. Weights whose n-grams are not there are left out.
std::vector<ClassNgrams> ngram_view(const SavedRun& run, const LabelledTexts& training);

}  // namespace capstan
