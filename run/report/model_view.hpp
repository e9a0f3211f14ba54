// A view into a trained model: its position biases, and its weights for the words of an example text; of a linear
// classifier its n-grams. `capstan report` fills it (apps/commands/report_command.cpp) and page.cpp shows it.
// tests/run/test_report_parts.cpp holds the words, tests/cli/runs/test_report.cpp the page.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/batches/labelled_texts.hpp"
#include "run/report/heat_map.hpp"
#include "run/setup/run_data.hpp"
#include "run/setup/run_model.hpp"

namespace capstan {

/// One kind of weights of a layer: a map per head, or a weight per word of the text and head, or both.
struct WeightsView {
  std::string name;  // "attention", "query pool"
  std::vector<HeatMap> maps;
  std::vector<std::vector<float>> words;  // (heads, words); the weights of a head add up to 1
};

struct LayerView {
  std::string name;  // "layer 1: aft-local"
  std::vector<HeatMap> position_bias;
  std::vector<WeightsView> weights;
  size_t heads_left_out = 0;  // heads that the page has no room for
};

struct ModelView {
  std::vector<std::string> words;  // of the example text
  std::vector<LayerView> layers;   // layers with something to show
  size_t layers_left_out = 0;      // layers that the page has no room for
};

/// The first row of a split: a batch (1, T).
Batch example_of(const DataSource& data, Split split);
/// A text given by the user as the model reads it, in the same form; of pairs a source. Throws Error when it is empty.
Batch example_of(const SavedRun& run, const std::string& text);

/// Words and the tokens that make them: tokens up to the next space form a word. Ids beyond the tokenizer's
/// vocabulary, which are between texts (the first) or between source and target, are separate words.
struct Words {
  std::vector<std::string> texts;  // by word
  std::vector<size_t> of_token;    // by token: the number of its word
};
Words words_of(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens);

/// Cuts the example to what a view can show; without one only the position biases are shown. What a token does not see,
/// because it is later or of another document, has no value; the sources of pairs are read as the model reads them.
ModelView view_of(const SavedRun& run, const std::optional<Batch>& example);

// The n-grams that speak for each class of a linear classifier.

struct NgramWeight {
  std::string name;
  float weight = 0;
};

/// The n-grams of a class with the largest weights, the largest first.
struct ClassNgrams {
  std::string name;
  std::vector<NgramWeight> ngrams;
};

/// A model stores hashes of n-grams, so their names are looked for in the training texts: each is the one that the
/// first texts with such a hash agree on. Weights whose n-grams are not there are left out.
std::vector<ClassNgrams> ngram_view(const SavedRun& run, const LabelledTexts& training);

std::string ngrams_html(const std::vector<ClassNgrams>& classes);

}  // namespace capstan
