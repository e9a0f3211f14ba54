// Scales and bias are those of the texts so far, groups grow from 1 to 256 texts, and counts take memory only for
// buckets that were in a text. The same calls must give the same bits on any number of threads:
// tests/train/linear/test_online_classifier.cpp.
#include "train/linear/online_classifier.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/math.hpp"
#include "core/base/stop.hpp"
#include "core/io/tensor_rows.hpp"
#include "core/machine/parallel.hpp"
#include "models/losses/class_weights.hpp"
#include "train/evaluation/label_report.hpp"
#include "train/linear/calibration.hpp"

namespace capstan {
namespace {

constexpr int64_t max_online_weights = 1 << 27;  // 512 MB
constexpr double default_squares = 0.003;  // what a text adds to the accumulator of a bucket on average: guess_rest()
constexpr size_t known_logarithms = 1 << 16;  // in a table: a logarithm for each n-gram would take most of the time

/// The configuration with what the texts would decide if they were known.
LinearClassifierConfig chosen(LinearClassifierConfig config, int64_t width) {
  check(width > 0, "OnlineClassifier: no classes");
  if (!config.words) config.words = {1, 2, 3};  // as NgramRows takes for many texts: few of them can all be kept
  if (config.min_texts == 0) config.min_texts = 1;
  if (config.buckets == 0)
    config.buckets = int64_t{1} << std::clamp(bits_of(max_online_weights / width + 1) - 1, 10, max_bucket_bits);
  return config;
}

}  // namespace

OnlineClassifier::OnlineClassifier(const LinearClassifierConfig& config, int64_t classes, bool multi_label)
    : config_(chosen(config, adagrad_width(adagrad_columns(classes, multi_label)))),
      classes_(classes),
      multi_label_(multi_label),
      solver_(config_, classes, multi_label,
              weights_of(config_.class_weights, std::vector<int64_t>(static_cast<size_t>(classes), 1), classes,
                         multi_label)),
      counts_of_classes_(static_cast<size_t>(classes), 0),
      logarithms_(known_logarithms),
      texts_with_(zero_pages<uint32_t>(config_.buckets)) {
  for (size_t i = 0; i < known_logarithms; ++i) logarithms_[i] = math::log(static_cast<double>(i + 1));
}

double OnlineClassifier::logarithm(uint32_t count) const {
  return count < known_logarithms ? logarithms_[count] : math::log(1 + static_cast<double>(count));
}

/// The log priors of the classes so far.
std::vector<double> OnlineClassifier::bias() const {
  std::vector<double> counts(counts_of_classes_);
  for (double& count : counts) count += 1;
  return log_priors(std::move(counts), weight_of_texts_, multi_label_);
}

/// The entries of a text by the scales so far. `itself`: 1 for a text to learn from, which counts among the texts, else
/// 0.
void OnlineClassifier::read_row(std::string_view text, uint32_t itself, RowScratch& scratch, RowValues& values) const {
  const int bits = bits_of(config_.buckets);
  const double log_texts = math::log(static_cast<double>(1 + texts_ + itself)) + 1;
  find_ngrams(text, orders_of(config_), bits, nullptr, &scratch.memory, scratch.found);
  values.all.clear();
  for (auto* const found : {&scratch.found.words, &scratch.found.characters}) {
    const size_t first = values.words = found == &scratch.found.words ? 0 : values.all.size();
    const std::vector<NgramCount> counts = counted(*found, bits);
    double squares = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (i + 2 * rows_ahead < counts.size())
        __builtin_prefetch(texts_with_.get() + counts[i + 2 * rows_ahead].bucket());
      const uint32_t texts_with = texts_with_[counts[i].bucket()] + itself;
      double x = 0;
      if (texts_with >= config_.min_texts)
        x = static_cast<double>(count_weight(counts[i].count())) * (log_texts - logarithm(texts_with));
      values.all.push_back({counts[i].bucket(), static_cast<float>(x)});
      squares += x * x;
    }
    const float norm = squares > 0 ? static_cast<float>(1 / std::sqrt(squares)) : 0;
    for (size_t i = first; i < values.all.size(); ++i) values.all[i].value *= norm;
  }
}

void OnlineClassifier::learn_group(const OnlineText* texts, int64_t count) {
  solver_.learn(count, static_cast<float>(solver_.first_rate()), bias(),
                [&](int64_t i, RowScratch& scratch, AdaGradExample& example) {
                  read_row(texts[i].text, 1, scratch, example.values);
                  example.labels = texts[i].labels;
                  example.weight = texts[i].weight;
                });
  solver_.for_parts([&](const AdaGradExample& example, int64_t first, int64_t last) {
    for (const NgramValues& part : example.values.in(first, last))
      for (const NgramValue* entry = part.begin; entry != part.end; ++entry) {
        if (entry + rows_ahead < part.end) __builtin_prefetch(texts_with_.get() + entry[rows_ahead].bucket, 1);
        ++texts_with_[entry->bucket];
      }
  });
  texts_ += count;
  for (int64_t i = 0; i < count; ++i) {
    weight_of_texts_ += texts[i].weight;
    for (const int32_t label : texts[i].labels) counts_of_classes_[static_cast<size_t>(label)] += texts[i].weight;
  }
}

void OnlineClassifier::learn(const std::vector<OnlineText>& texts) {
  for (const OnlineText& text : texts)
    if (!(text.weight >= 0) || !std::isfinite(text.weight))
      throw std::invalid_argument(fmt::format("a text has the weight {}: expected a number of 0 or more", text.weight));
  const FixedThreads same;
  const auto text_count = static_cast<int64_t>(texts.size());
  for (int64_t first = 0; first < text_count;) {
    stop_point();
    const int64_t count = std::min(std::clamp<int64_t>(texts_ / 8, 1, adagrad_batch), text_count - first);
    learn_group(texts.data() + first, count);
    first += count;
  }
}

std::vector<std::vector<float>> OnlineClassifier::logits(const std::vector<std::string>& texts) const {
  const std::vector<double> priors = bias();
  const std::vector<float> scores =
      solver_.scores(static_cast<int64_t>(texts.size()), [&](int64_t i, RowScratch& scratch, RowValues& values) {
        read_row(texts[static_cast<size_t>(i)], 0, scratch, values);
      });
  std::vector<std::vector<float>> rows;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::vector<double> of_row =
        solver_.logits(scores.data() + i * static_cast<size_t>(solver_.columns()), 1, priors);
    rows.emplace_back(of_row.begin(), of_row.end());
  }
  return rows;
}

void OnlineClassifier::fill(ParamStore& params) const {
  const auto values_of = [&](const char* name) { return params.values() + params.find(name).offset; };
  real* const scales = values_of("linear.scale");
  const std::vector<double> priors = bias();
  std::copy(priors.begin(), priors.end(), values_of("linear.bias"));
  if (multi_label_) std::fill_n(values_of("linear.threshold"), classes_, static_cast<real>(default_threshold));
  const double log_texts = math::log(static_cast<double>(1 + texts_)) + 1;
  for (int64_t f = 0; f < config_.buckets; ++f) {
    const uint32_t texts_with = texts_with_[static_cast<size_t>(f)];
    if (texts_with >= config_.min_texts) scales[f] = static_cast<real>(log_texts - logarithm(texts_with));
  }
  solver_.write_weights(1, values_of("linear.weight"));
}

std::string OnlineClassifier::write(const std::string& path) const {
  const auto used = rows_to_store(config_.buckets, [&](int64_t f) { return texts_with_[static_cast<size_t>(f)] > 0; });
  return write_safetensors(path,
                           {{"accumulators", DType::f32, {config_.buckets}, solver_.accumulators(), used},
                            {"texts_with", DType::i32, {config_.buckets}, texts_with_.get(), used},
                            {"classes", DType::f64, {classes_}, counts_of_classes_.data()},
                            {"weight_of_texts", DType::f64, {1}, &weight_of_texts_}},
                           {{"texts", std::to_string(texts_)}});
}

/// A tensor that has a row for each bucket.
const FileTensor& OnlineClassifier::table(const SafetensorsFile& file, const char* name, int64_t columns) const {
  const FileTensor& tensor = file.at(name);
  check(tensor.size == config_.buckets * columns, "tensor {}: {} elements for {} buckets", name, tensor.size,
        config_.buckets);
  return tensor;
}

void OnlineClassifier::read(const SafetensorsFile& params, const SafetensorsFile* rest) {
  const int64_t columns = solver_.columns();
  for_rows<float>(table(params, "linear.weight", classes_), [&](int64_t f, const float* row) {
    for (int64_t c = 0; c < columns; ++c)
      if (const float weight = row[columns == 1 ? 1 : c]; weight != 0) solver_.row(f)[c] = weight;
  });
  if (rest != nullptr)
    read_rest(*rest);
  else
    guess_rest(params);
}

void OnlineClassifier::read_rest(const SafetensorsFile& rest) {
  const auto texts = rest.metadata().find("texts");
  if (texts == rest.metadata().end())
    throw Error(fmt::format("{}: it does not say of how many texts it is", rest.path()));
  texts_ = std::strtoll(texts->second.c_str(), nullptr, 10);
  const FileTensor& classes = rest.at("classes");
  if (classes.size != classes_)
    throw Error(fmt::format("{}: it has {} classes, not {}", rest.path(), classes.size, classes_));
  classes.copy_to(counts_of_classes_.data());
  rest.at("weight_of_texts").copy_part(0, 1, &weight_of_texts_);
  for_rows<float>(table(rest, "accumulators"), [&](int64_t f, const float* sum) {
    if (*sum != 0) solver_.accumulators()[f] = *sum;
  });
  for_rows<double>(table(rest, "texts_with"), [&](int64_t f, const double* count) {
    if (*count != 0) texts_with_[static_cast<size_t>(f)] = static_cast<uint32_t>(*count);
  });
}

/// Estimates what solving for the weights knew. Scales tell how many texts had each n-gram, if the rarest ones were in
/// min_texts texts, and the bias tells the shares of the classes. Accumulators are what they are on average after so
/// many texts.
void OnlineClassifier::guess_rest(const SafetensorsFile& params) {
  double largest = 1;
  const FileTensor& scales = table(params, "linear.scale");
  for_rows<float>(scales,
                  [&](int64_t, const float* scale) { largest = std::max(largest, static_cast<double>(*scale)); });
  const auto rarest = static_cast<double>(config_.min_texts);
  const double texts_and_one = (1 + rarest) * math::exp(largest - 1);
  texts_ = static_cast<int64_t>(std::lround(texts_and_one)) - 1;
  weight_of_texts_ = static_cast<double>(texts_);
  for_rows<float>(scales, [&](int64_t f, const float* scale) {
    if (*scale == 0) return;
    const double with = std::max(texts_and_one / math::exp(static_cast<double>(*scale) - 1) - 1, rarest);
    texts_with_[static_cast<size_t>(f)] = static_cast<uint32_t>(std::lround(with));
    solver_.accumulators()[f] = static_cast<float>(default_squares * with);
  });
  std::vector<double> bias(static_cast<size_t>(classes_));
  params.at("linear.bias").copy_to(bias.data());
  const std::vector<float> shares = probabilities_of(bias, multi_label_);
  for (size_t c = 0; c < shares.size(); ++c)
    counts_of_classes_[c] = std::max(
        static_cast<double>(shares[c]) * (weight_of_texts_ + (multi_label_ ? 2.0 : static_cast<double>(classes_))) - 1,
        0.0);
}

}  // namespace capstan
