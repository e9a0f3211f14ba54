// A linear classifier over TF-IDF weighted n-grams of words and characters. It reads texts, not tokens, and its weights
// are solved for, not trained in steps: train/linear/fit_linear.hpp. tests/models/test_linear_classifier.cpp compares
// the logits with their definition.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/autograd/var.hpp"
#include "models/losses/class_weights.hpp"
#include "models/model.hpp"
#include "nn/layers/ngram_table.hpp"
#include "nn/layers/text_ngrams.hpp"
#include "nn/params/scope.hpp"

namespace capstan {

/// Configures LinearClassifier and how it is solved for (train/linear/fit_linear.hpp).
struct LinearClassifierConfig {
  static constexpr const char* type_name = "linear-classifier";
  std::optional<std::vector<int64_t>> words{std::in_place};  // lengths of n-grams; none: chosen by the number of texts
  std::vector<int64_t> characters;
  bool text_ends = false;
  bool unicode = false;
  int64_t min_texts = 0;  // no key: n-grams in fewer texts are left out; 0: chosen by their number
  int64_t buckets = 0;
  int64_t folds = 5;
  ClassWeights class_weights;
};

template <class Fields>
void describe(Fields& f, LinearClassifierConfig& c) {
  f("words", c.words, any(),
    "lengths of the n-grams of words; null = chosen: [1, 2], or [1, 2, 3] with 100,000 training texts or more");
  f("characters", c.characters, any(),
    "lengths of the n-grams of characters within words, whose start and end count as characters");
  f("text_ends", c.text_ends, any(), "count the start and the end of a text as words in n-grams of two or more words");
  f("unicode", c.unicode, any(),
    "words, case and width are Unicode's; in scripts without blanks (Chinese, Thai, ...) each character is a word");
  f("buckets", c.buckets, between(0, 1 << 24),
    "rows in the table of n-grams, a power of two; 0 = chosen: four or more per n-gram, within 256 MB for all classes, "
    "or 512 MB of too many n-grams to solve for");
  f("folds", c.folds, between(2, 100),
    "parts of the training data for the cross-validation that chooses strength and weighting of the n-grams");
  f("class_weights", c.class_weights, any(),
    "factor of the loss of a text: equal (1), balanced (inversely proportional to the size of its class) or listed, "
    "{type: listed, weights: [1, 20]}, for which train.costs may be what is meant; probabilities stay those of the "
    "data, and decisions follow the weights");
}

void validate(const LinearClassifierConfig& config, Problems& problems);

/// Throws std::logic_error while `words` is not chosen yet.
inline NgramOrders orders_of(const LinearClassifierConfig& c) {
  if (!c.words) throw std::logic_error("linear-classifier: the lengths of n-grams of words are not chosen");
  return {*c.words, c.characters, c.text_ends, c.unicode};
}

/// Sets the keys that `open` leaves open to the values of the configuration `saved`.
inline void take_choices(const LinearClassifierConfig& saved, LinearClassifierConfig& open) {
  if (!open.words) open.words = saved.words;
  if (open.buckets == 0) open.buckets = saved.buckets;
}

inline ModelFacts facts(const LinearClassifierConfig& config) {
  ModelFacts facts;
  facts.predicts = Predicts::classes;
  facts.is_solved = facts.reads_texts = true;
  facts.class_weights = &config.class_weights;
  // min_texts is not searched: n-grams are counted in all texts, so cross-validation would judge it by texts it has
  // seen.
  facts.searched = {"words=[[1, 2], [1], [1, 2, 3]]", "characters=[[2, 3, 4, 5], [], [3, 4, 5, 6], [1, 2, 3, 4, 5, 6]]",
                    "text_ends=[true, false]"};
  return facts;
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// A bucket of n-grams, and what one occurrence of its n-grams adds to the logit of a class, before a text's n-grams
/// are scaled to unit norm.
struct BucketWeight {
  uint32_t bucket;
  float weight;
};

/// The logits of a text as a sum: what each of its n-grams adds to the logit of each class, and a constant per class.
struct TextExplanation {
  struct Ngram {
    std::string name;            // n-grams with the same bucket are one entry with all names: "one | two"
    std::vector<double> logits;  // what it adds to the logit of each class
  };
  std::vector<double> bias;
  std::vector<Ngram> ngrams;
};

/// y = b + sum over blocks of x W,  x[f] = c(count of f) scale[f] / |block|,  c(n) = 1 + ln n. A text has two blocks,
/// its n-grams of words and those of characters (count_ngrams); each has unit norm. Buckets with scale 0 are left out:
/// no n-gram of the training texts is there. Constants linear.scale (buckets), linear.weight (buckets, C) and
/// linear.bias (C), all zero at first. Where a text has any number of the classes, also linear.threshold (C): the
/// probability from which it has one.
class LinearClassifier final : public Model {
 public:
  /// config.buckets 0 stands for the least number, 16. Make it, then finalize() the store of `scope`.
  LinearClassifier(const Scope& scope, const LinearClassifierConfig& config, int64_t classes, bool multi_label = false);

  void take_tables(const SafetensorsFile& file) override;
  const LinearClassifier* find_linear() const override { return this; }
  /// The logits of N texts: (N, C).
  Array text_logits(const std::vector<std::string>& texts) const;
  /// What each n-gram of a text adds to its logits.
  TextExplanation explain(std::string_view text) const;
  /// For each class, the buckets with the largest positive weights, at most `count`, the largest first.
  std::vector<std::vector<BucketWeight>> largest_weights(size_t count) const;
  /// How much each bucket matters; 0: not at all. How far its n-grams move the logits of classes apart, times the
  /// square root of the share of texts that have these n-grams.
  std::vector<float> row_importance() const;
  Array probabilities(const Var& logits) const override;
  /// For each label, the probability from which a text has it; empty: a text has one label.
  std::vector<double> thresholds() const;

  const LinearClassifierConfig& config() const { return config_; }
  int64_t buckets() const { return scale_.size(); }
  int64_t classes() const override { return bias_.size(); }
  int64_t label_columns() const override { return multi_label_ ? classes() : 0; }
  ModelSummary summary(const ParamStore& store, int64_t length, DecodeStates states) const override;

 private:
  /// The table that take_tables() copied from a file; in a model that has just been solved for, one over its
  /// parameters.
  NgramTable ngram_table() const {
    return table_ ? *table_ : NgramTable(orders_of(config_), scale_.value(), weight_.value());
  }
  void explain_block(const std::vector<NamedNgram>& ngrams, TextExplanation& out) const;

  LinearClassifierConfig config_;
  int bits_;
  bool multi_label_;
  Var scale_, weight_, bias_, threshold_;
  std::optional<NgramTable> table_;
};

inline std::unique_ptr<Model> make_model(const LinearClassifierConfig& config, const Scope& scope,
                                         const ModelSizes& sizes) {
  return std::make_unique<LinearClassifier>(scope, config, sizes.classes, sizes.multi_label);
}

}  // namespace capstan::CAPSTAN_PRECISION
