// A view into a trained model: its position biases, and its weights for the words of an example text.
#pragma once

#include <string>
#include <vector>

#include "run/report/heat_map.hpp"
#include "run/setup/run_data.hpp"
#include "run/setup/run_model.hpp"

namespace capstan {

/// One kind of weights of a layer: a map per head, or a weight per word of the text and head, or both.
struct WeightsView {
  std::string name;  // "attention", "query pool"
  std::vector<HeatMap> maps;
  std::vector<std::vector<float>> words;  // (heads, words), each head's sum is 1
};

struct LayerView {
  std::string name;  // "layer 1: aft-local"
  std::vector<HeatMap> position_bias;
  std::vector<WeightsView> weights;
  size_t heads_left_out = 0;
};

struct ModelView {
  std::vector<std::string> words;  // of the example text
  std::vector<LayerView> layers;   // layers with something to show
  size_t layers_left_out = 0;
};

/// The beginning of the first example of a split, as many tokens as a view can show.
std::vector<int32_t> example_tokens(const DataSource& data, Split split);
/// The tokens of a text given by the user. Throws Error when it has none.
std::vector<int32_t> example_tokens(const Tokenizer& tokenizer, const std::string& text);

/// Words and the tokens that make them: tokens up to the next space form a word. Ids beyond the tokenizer's
/// vocabulary, which separate texts, are separate words.
struct Words {
  std::vector<std::string> texts;
  std::vector<size_t> of_token;
};
Words words_of(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens);

/// Cuts the text to what the model can read; without tokens only the position biases are shown.
ModelView view_of(const SavedRun& run, std::vector<int32_t> tokens);

}  // namespace capstan
