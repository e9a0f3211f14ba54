// Logits, explanations and the largest weights of a linear classifier are read through NgramTable, whether the model
// was read from a file or has just been solved for. tests/models/test_linear_classifier.cpp.
#include "models/linear_classifier.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/error.hpp"
#include "core/base/math.hpp"
#include "core/base/stop.hpp"
#include "core/machine/parallel.hpp"
#include "core/ops/math.hpp"
#include "core/ops/reduce.hpp"
#include "core/strings/strings.hpp"
#include "models/summary.hpp"

namespace capstan {

void validate(const LinearClassifierConfig& config, Problems& problems) {
  const auto check_orders = [&](const char* key, const std::vector<int64_t>& orders) {
    for (size_t i = 0; i < orders.size(); ++i) {
      if (orders[i] < 1 || orders[i] > 16)
        problems.add(fmt::format("{}.{}", key, i), fmt::format("an n-gram has a length of 1 to 16, not {}", orders[i]));
      if (std::count(orders.begin(), orders.end(), orders[i]) > 1)
        problems.add(fmt::format("{}.{}", key, i), fmt::format("{} is listed twice", orders[i]));
    }
  };
  if (config.words) check_orders("words", *config.words);
  check_orders("characters", config.characters);
  if (config.words && config.words->empty() && config.characters.empty())
    problems.add("words", "a linear-classifier needs n-grams: give lengths of words, of characters, or of both");
  if (config.buckets != 0 && (config.buckets < 16 || (config.buckets & (config.buckets - 1)) != 0))
    problems.add("buckets", fmt::format("expected 0 or a power of two from 16, got {}", config.buckets));
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {
namespace {

ParamOptions constant() {
  ParamOptions options;
  options.decay = false;
  options.constant = true;
  return options;
}

constexpr int64_t min_buckets = 16;
constexpr int64_t texts_per_thread = 16;  // at least: fewer texts take less time than to start a thread's part

}  // namespace

LinearClassifier::LinearClassifier(const Scope& scope, const LinearClassifierConfig& config, int64_t classes,
                                   bool multi_label)
    : config_(config),
      bits_(bits_of(std::max(config.buckets, min_buckets))),
      multi_label_(multi_label),
      scale_(scope.param("linear.scale", {int64_t{1} << bits_}, init::zeros(), constant())),
      weight_(scope.param("linear.weight", {int64_t{1} << bits_, classes}, init::zeros(), constant())),
      bias_(scope.param("linear.bias", {classes}, init::zeros(), constant())) {
  if (multi_label) threshold_ = scope.param("linear.threshold", {classes}, init::zeros(), constant());
}

Array LinearClassifier::probabilities(const Var& logits) const {
  return multi_label_ ? sigmoid(logits).value() : Model::probabilities(logits);
}

std::vector<double> LinearClassifier::thresholds() const {
  if (!multi_label_) return {};
  return {threshold_.value().data(), threshold_.value().data() + classes()};
}

void LinearClassifier::take_tables(const SafetensorsFile& file) {
  table_.emplace(orders_of(config_), file.at("linear.scale"), file.at("linear.weight"));
  for (const auto& [name, var] : {std::pair("linear.bias", &bias_), {"linear.threshold", &threshold_}})
    if (*var) {
      Array values(var->shape());
      file.at(name).copy_to(values.mutable_data());
      var->assign(std::move(values));
    }
}

Array LinearClassifier::text_logits(const std::vector<std::string>& texts) const {
  Array logits(Shape{static_cast<int64_t>(texts.size()), classes()});
  real* const out = logits.mutable_data();
  const NgramTable table = ngram_table();
  parallel_for(logits.dim(0), texts_per_thread, [&](int64_t begin, int64_t end) {
    std::vector<double> sums(static_cast<size_t>(classes()));
    for (int64_t i = begin; i < end; ++i) {
      stop_point();
      std::copy_n(bias_.value().data(), classes(), sums.begin());
      table.add_text(texts[static_cast<size_t>(i)], sums.data());
      std::transform(sums.begin(), sums.end(), out + i * classes(), [](double sum) { return static_cast<real>(sum); });
    }
  });
  return logits;
}

void LinearClassifier::explain_block(const std::vector<NamedNgram>& ngrams, TextExplanation& out) const {
  struct Entry {
    uint32_t count = 0;  // counts end at 255
    std::vector<std::string> names;
  };
  std::map<uint32_t, Entry> entries;  // by bucket
  for (const NamedNgram& ngram : ngrams) {
    auto& [count, names] = entries[ngram.bucket];
    count = std::min(count + 1, 255U);
    if (std::find(names.begin(), names.end(), ngram.name) == names.end()) names.push_back(ngram.name);
  }
  const NgramTable table = ngram_table();
  const auto value_of = [&](uint32_t bucket, const Entry& entry) {  // x[f] before its block is scaled to unit norm
    return static_cast<double>(count_weight(entry.count)) * static_cast<double>(table.scale(bucket));
  };
  double squares = 0;
  for (const auto& [bucket, entry] : entries) squares += value_of(bucket, entry) * value_of(bucket, entry);
  for (const auto& [bucket, entry] : entries) {
    const double x = value_of(bucket, entry) / std::sqrt(squares);
    std::vector<double> logits;
    for (int64_t c = 0; c < classes(); ++c) logits.push_back(x * static_cast<double>(table.weights(bucket)[c]));
    out.ngrams.push_back({join(entry.names, " | "), std::move(logits)});
  }
}

TextExplanation LinearClassifier::explain(std::string_view text) const {
  TextExplanation explanation;
  explanation.bias.assign(bias_.value().data(), bias_.value().data() + classes());
  const NgramTable table = ngram_table();
  const auto is_known = [&](uint32_t bucket) { return table.scale(bucket) != 0; };
  const NamedNgrams known = named_ngrams(text, orders_of(config_), bits_, is_known);
  explain_block(known.words, explanation);
  explain_block(known.characters, explanation);
  return explanation;
}

std::vector<std::vector<BucketWeight>> LinearClassifier::largest_weights(size_t count) const {
  std::vector<std::vector<BucketWeight>> of_classes(static_cast<size_t>(classes()));
  const auto precedes = [](const BucketWeight& a, const BucketWeight& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.bucket < b.bucket;
  };
  const NgramTable table = ngram_table();
  for (size_t c = 0; c < of_classes.size(); ++c) {
    for (int64_t bucket = 0; bucket < buckets(); ++bucket) {
      const real* const weights = table.weights(bucket);
      const auto weight = weights == nullptr ? 0.0F : static_cast<float>(table.scale(bucket) * weights[c]);
      if (weight > 0) of_classes[c].push_back({static_cast<uint32_t>(bucket), weight});
    }
    const size_t kept = std::min(count, of_classes[c].size());
    std::partial_sort(of_classes[c].begin(), of_classes[c].begin() + static_cast<std::ptrdiff_t>(kept),
                      of_classes[c].end(), precedes);
    of_classes[c].resize(kept);
  }
  return of_classes;
}

std::vector<float> LinearClassifier::row_importance() const {
  std::vector<float> importance;
  const NgramTable table = ngram_table();
  for (int64_t bucket = 0; bucket < buckets(); ++bucket) {
    const real* const row = table.weights(bucket);
    if (row == nullptr) {
      importance.push_back(0);
      continue;
    }
    const auto scale = static_cast<double>(table.scale(bucket));
    double mean = 0, most = 0;
    for (int64_t c = 0; c < classes() && !multi_label_; ++c)
      mean += static_cast<double>(row[c]) / static_cast<double>(classes());
    for (int64_t c = 0; c < classes(); ++c) most = std::max(most, std::abs(static_cast<double>(row[c]) - mean));
    // scale = 1 - ln(share of texts), so exp(-scale / 2) is the root of the share, but for a constant
    // (train/linear/ngram_rows.hpp).
    importance.push_back(static_cast<float>(scale * math::exp(-scale / 2) * most));
  }
  return importance;
}

/// FLOPs per token: a token begins about one n-gram of each length, and an n-gram adds one row of weights.
ModelSummary LinearClassifier::summary(const ParamStore& store, int64_t length, DecodeStates) const {
  ModelSummary summary = summarize_parameters(store, length);
  const std::vector<int64_t> words = config().words.value_or(std::vector<int64_t>{});
  const size_t lengths = words.size() + config().characters.size();
  summary.part("linear").flops = 2 * static_cast<double>(lengths) * static_cast<double>(classes());
  std::string ngrams = config().words ? "" : "words, lengths chosen for the texts",
              table = "buckets     chosen for the training texts\n";
  for (const auto& [orders, kind] : {std::pair(&words, "words"), {&config().characters, "characters"}})
    if (!orders->empty()) ngrams += fmt::format("{}{} {}", ngrams.empty() ? "" : "; ", join(*orders), kind);
  if (config().buckets > 0 && (table_ || store.has_memory())) {
    const NgramTable rows = ngram_table();
    int64_t used = 0;
    for (int64_t bucket = 0; bucket < buckets(); ++bucket) used += rows.scale(bucket) != 0 ? 1 : 0;
    table = fmt::format("buckets     {} of {} in use\nweights     {}, one of each class in each of these buckets\n",
                        used, buckets(), used * classes());
  } else if (config().buckets > 0) {
    table = fmt::format("buckets     {}\n", buckets());
  }
  summary.text = fmt::format("{}, solved for in one go\nclasses     {}\nn-grams of  {}\n{}",
                             LinearClassifierConfig::type_name, classes(), ngrams, table);
  return summary;
}

}  // namespace capstan::CAPSTAN_PRECISION
