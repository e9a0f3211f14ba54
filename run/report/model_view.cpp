// Values come from the model's own functions (mixing_weights(), position_bias()); this file only cuts them to what a
// page can show and takes out what a token does not see. Names of n-grams are found by hashing the training texts
// again, since a model keeps their hashes alone. tests/run/test_model_view.cpp and tests/cli/runs/test_report.cpp.
#include "run/report/model_view.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/core.h>

#include "core/base/error.hpp"
#include "models/language_model.hpp"
#include "models/linear_classifier.hpp"
#include "nn/layers/text_ngrams.hpp"

namespace capstan {
namespace {

constexpr size_t max_layers = 8, max_heads = 4;
constexpr int64_t max_tokens = 128;

/// What each token of one row sees, by the same rules as the model: a map shows no value where it sees nothing.
struct Sight {
  Context context;
  bool causal, whole_sources;
  /// Does target t see source s?
  bool sees(int64_t t, int64_t s) const {
    const Ids& segments = context.segments.ids();
    if (segments[t] != segments[s]) return false;
    const bool within_prefix =
        context.prefixes.batch() > 0 && context.prefixes.ids()[t] != 0 && context.prefixes.ids()[s] != 0;
    return !causal || s <= t || within_prefix;
  }
};

/// A map for each of the first heads. values: (heads, T, T).
std::vector<WeightMap> maps_of(const Array& values, const Sight& sight) {
  const int64_t heads = values.dim(0), length = values.dim(1);
  std::vector<WeightMap> maps;
  for (int64_t head = 0; head < std::min<int64_t>(heads, max_heads); ++head) {
    const float* const from = values.data() + head * length * length;
    maps.push_back({static_cast<size_t>(length), {from, from + length * length}});
    for (int64_t t = 0; t < length; ++t)
      for (int64_t s = 0; s < length; ++s)
        if (!sight.sees(t, s)) maps.back().values[static_cast<size_t>(t * length + s)] = NAN;
  }
  return maps;
}

/// The weights of the last token for each word, per head; for additive attention, which pools, those of the whole text.
/// A word has the sum of the weights of its tokens. values: (heads, T, T).
std::vector<std::vector<float>> word_weights(const Array& values, const Words& words) {
  const auto heads = static_cast<size_t>(values.dim(0)), length = static_cast<size_t>(values.dim(1));
  std::vector<std::vector<float>> of_heads;
  for (size_t head = 0; head < std::min(heads, max_heads); ++head) {
    std::vector<float> weights(words.texts.size(), 0);
    const float* const row = values.data() + (head * length + length - 1) * length;
    for (size_t token = 0; token < length; ++token) weights[words.of_token[token]] += row[token];
    of_heads.push_back(std::move(weights));
  }
  return of_heads;
}

/// The view of one kind of weights of one text: (1, H, T, T).
WeightsView view_of_weights(const MixingWeights& weights, const Words& words, const Sight& sight) {
  const Array& values = weights.values;
  const Array heads = values.reshape(Shape{values.dim(1), values.dim(2), values.dim(3)});
  WeightsView view{weights.name, {}, {}};
  // Without causality every token uses the same pool: all rows of a map would be equal.
  if (!weights.pool || sight.causal) view.maps = maps_of(heads, sight);
  if (weights.pool) view.words = word_weights(heads, words);
  return view;
}

LayerView view_of_layer(const Array& bias, const std::vector<MixingWeights>& weights, const Words& words,
                        const Sight& sight) {
  LayerView layer;
  if (!bias.empty()) {
    // Within a source that is read as a whole, the bias of later positions is used, too.
    const bool causal = sight.causal && !sight.whole_sources;
    layer.position_bias = maps_of(bias, {Context::evaluation(1, bias.dim(1)), causal, false});
  }
  for (const MixingWeights& kind : weights) layer.weights.push_back(view_of_weights(kind, words, sight));
  return layer;
}

/// Columns [0, count) of a row (1, T).
Ids first_columns(const Ids& row, int64_t count) {
  return Ids(Shape{1, count}, std::vector<int32_t>(row.data(), row.data() + count));
}

/// A row without its padding, of at most `most` tokens.
Batch shown_part(const Batch& row, int64_t most) {
  int64_t count = std::min(row.tokens.dim(1), most);
  while (count > 0 && row.segment_ids[count - 1] == 0) --count;
  Batch part{first_columns(row.tokens, count), first_columns(row.segment_ids, count), row.labels, row.examples};
  if (row.labels.rank() == 2 && row.labels.dim(1) == row.tokens.dim(1)) part.labels = first_columns(row.labels, count);
  return part;
}

/// Adds the token that pooling `cls` puts in front of the text.
void add_first_token(Words& words, Sight& sight) {
  words.texts.insert(words.texts.begin(), "[cls] ");
  for (size_t& word : words.of_token) ++word;
  words.of_token.insert(words.of_token.begin(), 0);
  sight.context = Context::evaluation(1, static_cast<int64_t>(words.of_token.size()));
}

/// What stands for tokens that are no text. Each begins and ends with a space, so that words_of() makes it a word.
constexpr const char *between_texts_text = " \u2016 ", *before_target_text = " \u2192 ";

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// N-grams that are shown of a class, and those whose names are looked for: more, since some are not found.
constexpr size_t max_shown = 12, wanted = 20;
constexpr size_t votes = 3;  // texts that vote for the name of a bucket

}  // namespace

Batch example_of(const DataSource& data, Split split) { return rows_of(data.evaluation(split)->batch(0, 0), 0, 1); }

Batch example_of(const SavedRun& run, const std::string& text) {
  const std::vector<int32_t> tokens = prompt_of(run, text, "--text");
  if (tokens.empty()) throw Error("--text: there is no token in the text");
  const Shape shape{1, static_cast<int64_t>(tokens.size())};
  Batch batch{Ids(shape, tokens), Ids(shape, 1), Ids(shape, ignored_target), {}};
  batch.labels.mutable_data()[shape.size() - 1] = 0;  // from here on the target is predicted
  return batch;
}

Words words_of(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens) {
  Words words;
  int32_t previous = -1;
  bool after_blank = false;
  for (const int32_t token : tokens) {
    const bool between_texts = token >= tokenizer.vocabulary_size();
    const std::string piece = !between_texts                         ? tokenizer.piece(token, previous)
                              : token == tokenizer.vocabulary_size() ? between_texts_text
                                                                     : before_target_text;
    previous = between_texts ? -1 : token;
    const bool blank_first = !piece.empty() && is_blank(piece.front());
    // Word tokenizers give " word"; byte and character tokenizers give the space as a separate token.
    if (words.texts.empty() || (blank_first && piece.size() > 1) || (after_blank && !blank_first))
      words.texts.emplace_back();
    words.texts.back() += piece;
    words.of_token.push_back(words.texts.size() - 1);
    if (!piece.empty()) after_blank = is_blank(piece.back());
  }
  return words;
}

ModelView view_of(const SavedRun& run, const std::optional<Batch>& example) {
  const RunModel& model = *run.model;
  if (find_model(run.config.model) == nullptr) return {};
  const ModelConfig& config = model_of(run.config);
  const ModelFacts facts = facts_of(run.config.model);
  std::vector<std::vector<MixingWeights>> weights(model.stack().blocks().size());
  Words words;
  Sight sight{{}, facts.is_causal, facts.reads_sources};
  if (example) {
    const Batch row = shown_part(*example, std::min(max_tokens, model.position_limit().value_or(max_tokens)));
    words = words_of(*run.tokenizer, {row.tokens.data(), row.tokens.data() + row.tokens.size()});
    sight.context.segments = Segments(row.segment_ids);
    if (facts.reads_sources) sight.context.prefixes = prefixes_of(sight.context.segments, row.labels);
    weights = model.model().mixing_weights(row.tokens, sight.context);
    if (facts.begins_with_own) add_first_token(words, sight);
  }
  const std::vector<LayerConfig> layers = expanded_layers(config);
  ModelView view{words, {}};
  for (size_t i = 0; i < layers.size() && view.layers.size() < max_layers; ++i) {
    const Array bias = model.stack().blocks()[i].mixer().position_bias(max_tokens);
    LayerView layer = view_of_layer(bias, weights[i], words, sight);
    if (layer.position_bias.empty() && layer.weights.empty()) continue;
    layer.name = fmt::format("layer {}: {}", i + 1, mixer_name(layers[i].mixer));
    view.layers.push_back(std::move(layer));
  }
  return view;
}

std::vector<ClassNgrams> ngram_view(const SavedRun& run, const LabelledTexts& training) {
  const LinearClassifier& model = run.model->model().linear_classifier();
  const auto weights = model.largest_weights(wanted);
  std::map<uint32_t, std::map<std::string, size_t>> names;  // bucket -> name -> votes
  std::map<uint32_t, size_t> open;                          // bucket -> votes that are missing
  for (const auto& of_class : weights)
    for (const BucketWeight& weight : of_class) open[weight.bucket] = votes;
  const auto wanted_still = [&](uint32_t bucket) { return open.count(bucket) > 0; };
  for (int64_t i = 0; i < training.size() && !open.empty(); ++i) {
    const NamedNgrams of_text =
        named_ngrams(training.text(i), orders_of(model.config()), bits_of(model.buckets()), wanted_still);
    std::set<uint32_t> voted;  // a text has one vote for each bucket
    for (const auto* const ngrams : {&of_text.words, &of_text.characters})
      for (const NamedNgram& ngram : *ngrams) {
        if (!voted.insert(ngram.bucket).second) continue;
        ++names[ngram.bucket][ngram.name];
        if (--open[ngram.bucket] == 0) open.erase(ngram.bucket);
      }
  }
  std::vector<ClassNgrams> classes;
  for (size_t c = 0; c < weights.size(); ++c) {
    classes.push_back({run.classes[c], {}});
    for (const BucketWeight& weight : weights[c]) {
      const auto& of_bucket = names[weight.bucket];
      const auto likeliest = std::max_element(of_bucket.begin(), of_bucket.end(),
                                              [](const auto& a, const auto& b) { return a.second < b.second; });
      if (likeliest != of_bucket.end() && classes.back().ngrams.size() < max_shown)
        classes.back().ngrams.push_back({likeliest->first, weight.weight});
    }
  }
  return classes;
}

}  // namespace capstan
