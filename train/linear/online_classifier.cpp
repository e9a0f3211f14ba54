// AdaGrad as in adagrad.cpp, but scales and bias are those of the texts so far, groups grow from 1 to 256 texts,
// and accumulators and counts take memory only for buckets that were in a text. The same calls must give the same bits
// on any number of threads: tests/train/linear/test_online_classifier.cpp.
#include "train/linear/online_classifier.hpp"

#include <algorithm>
#include <cmath>
#include <new>

#include "core/base/error.hpp"
#include "core/base/math.hpp"
#include "core/base/stop.hpp"
#include "core/machine/parallel.hpp"
#include "models/losses/class_weights.hpp"
#include "train/evaluation/label_report.hpp"
#include "train/linear/adagrad.hpp"
#include "train/linear/calibration.hpp"

namespace capstan {
namespace {

/// Rates of AdaGrad, chosen by texts of several data sets (docs/notes/ngrams.md).
constexpr float default_rate = 1, rate_of_two_classes = 0.35F;
constexpr int64_t max_at_once = 256, texts_per_thread = 16;  // max_at_once: gradients with the same weights
constexpr int64_t max_online_weights = 1 << 27;              // 512 MB
constexpr double default_squares = 0.003;  // what a text adds to the accumulator of a bucket on average: guess_rest()
constexpr size_t known_logarithms = 1 << 16;  // in a table: a logarithm for each n-gram would take most of the time

/// Memory of zeros, of which pages that are never written to take none.
template <class T>
T* zeros(int64_t count) {
  void* const memory = std::calloc(static_cast<size_t>(count), sizeof(T));
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<T*>(memory);
}

}  // namespace

OnlineClassifier::OnlineClassifier(const LinearClassifierConfig& config, int64_t classes, bool multi_label)
    : config_(config),
      classes_(classes),
      multi_label_(multi_label),
      columns_(classes == 2 && !multi_label ? 1 : classes),
      width_(width_of(columns_)),
      counts_of_classes_(static_cast<size_t>(classes), 0),
      logarithms_(known_logarithms) {
  if (!config_.words) config_.words = {1, 2, 3};  // as NgramRows takes for many texts: few of them can all be kept
  if (config_.min_texts == 0) config_.min_texts = 1;
  check(classes > 0, "OnlineClassifier: {} classes", classes);
  if (config_.buckets == 0)
    config_.buckets = int64_t{1} << std::clamp(bits_of(max_online_weights / width_ + 1) - 1, 10, max_bucket_bits);
  class_weights_ =
      weights_of(config_.class_weights, std::vector<int64_t>(static_cast<size_t>(classes), 1), classes, multi_label_);
  log_weights_ = log_weights_of(class_weights_);
  weights_.reset(zeros<float>(config_.buckets * width_));
  accumulators_.reset(zeros<float>(config_.buckets));
  texts_with_.reset(zeros<uint32_t>(config_.buckets));
  for (size_t i = 0; i < known_logarithms; ++i) logarithms_[i] = math::log(static_cast<double>(i + 1));
}

double OnlineClassifier::logarithm(uint32_t count) const {
  return count < known_logarithms ? logarithms_[count] : math::log(1 + static_cast<double>(count));
}

/// The log priors of the classes so far, as log_priors() has them.
std::vector<double> OnlineClassifier::bias() const {
  std::vector<double> logits;
  double mean = 0;
  for (const double count : counts_of_classes_) {
    logits.push_back(math::log(count + 1) - (multi_label_ ? math::log(weight_of_texts_ - count + 1) : 0));
    mean += logits.back() / static_cast<double>(classes_);
  }
  for (double& logit : logits) logit -= multi_label_ ? 0 : mean;
  return logits;
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

void OnlineClassifier::add_scores(const RowValues& values, float* scores) const {
  const float* const weights = weights_.get();
  const std::vector<NgramValue>& all = values.all;
  const int64_t width = width_;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i + rows_ahead < all.size())
      for (int64_t k = 0; k < width; k += 16) __builtin_prefetch(weights + all[i + rows_ahead].bucket * width + k);
    const float* const from = weights + all[i].bucket * width;
    const float x = all[i].value;
    if (width == 1) {
      *scores += x * *from;
      continue;
    }
#pragma omp simd
    for (int64_t k = 0; k < width; ++k) scores[k] += x * from[k];
  }
}

void OnlineClassifier::find_gradients(const OnlineText& text, const std::vector<double>& bias, Row& row) const {
  float* const gradients = row.gradients.data();
  const auto logit = [&](int64_t c) {
    const double shift = log_weights_.empty() ? 0 : log_weights_[static_cast<size_t>(c)];
    return static_cast<double>(gradients[c]) + bias[static_cast<size_t>(c)] + shift;
  };
  const auto weight_of = [&](int64_t c) {
    return static_cast<float>(text.weight * (class_weights_.empty() ? 1 : class_weights_[static_cast<size_t>(c)]));
  };
  if (multi_label_) {
    for (int64_t c = 0; c < classes_; ++c) gradients[c] = static_cast<float>(1 / (1 + math::exp(-logit(c))));
    const auto weight = static_cast<float>(text.weight);
    for (const int32_t label : text.labels) gradients[label] -= 1;
    for (int64_t c = 0; c < classes_; ++c) gradients[c] *= weight;
    if (!class_weights_.empty())
      for (const int32_t label : text.labels)
        gradients[label] *= static_cast<float>(class_weights_[static_cast<size_t>(label)]);
  } else if (columns_ == 1) {
    const double shift = log_weights_.empty() ? 0 : (log_weights_[1] - log_weights_[0]) / 2;
    const double score = static_cast<double>(gradients[0]) + bias[1] + shift;
    const int32_t label = text.labels.front();
    gradients[0] = static_cast<float>(2 / (1 + math::exp(-2 * score)) - 2 * label) * weight_of(label);
  } else {
    double most = logit(0), sum = 0;
    for (int64_t c = 1; c < classes_; ++c) most = std::max(most, logit(c));
    for (int64_t c = 0; c < classes_; ++c)
      sum += static_cast<double>(gradients[c] = static_cast<float>(math::exp(logit(c) - most)));
    const int32_t label = text.labels.front();
    for (int64_t c = 0; c < classes_; ++c)
      gradients[c] = (gradients[c] / static_cast<float>(sum) - (c == label ? 1 : 0)) * weight_of(label);
  }
  row.squares = 0;
  for (int64_t c = 0; c < columns_; ++c) row.squares += gradients[c] * gradients[c];
}

void OnlineClassifier::step(const Row& row, const NgramValues& part, float share) {
  const float rate = share * (columns_ == 1 ? rate_of_two_classes : default_rate);
  const float squares = row.squares * share;
  const float* const gradients = row.gradients.data();
  const int64_t width = width_;
  for (const NgramValue* entry = part.begin; entry != part.end; ++entry) {
    if (entry + rows_ahead < part.end) {
      const uint32_t next = entry[rows_ahead].bucket;
      for (int64_t k = 0; k < width; k += 16) __builtin_prefetch(weights_.get() + next * width + k, 1);
      __builtin_prefetch(accumulators_.get() + next, 1);
      __builtin_prefetch(texts_with_.get() + next, 1);
    }
    ++texts_with_[entry->bucket];
    if (entry->value == 0) continue;
    float& accumulator = accumulators_[entry->bucket];
    accumulator += squares * entry->value * entry->value;
    const float each = rate * entry->value / std::sqrt(initial_accumulator + accumulator);
    float* const to = weights_.get() + entry->bucket * width;
    if (width == 1) {
      *to -= each * *gradients;
      continue;
    }
#pragma omp simd
    for (int64_t k = 0; k < width; ++k) to[k] -= each * gradients[k];
  }
}

void OnlineClassifier::learn_group(const OnlineText* texts, int64_t count) {
  const std::vector<double> priors = bias();
  parallel_for(count, texts_per_thread, [&](int64_t begin, int64_t end) {
    RowScratch& scratch = scratches_[static_cast<size_t>(thread_index())];
    for (int64_t i = begin; i < end; ++i) {
      Row& row = group_[static_cast<size_t>(i)];
      read_row(texts[i].text, 1, scratch, row.values);
      row.gradients.assign(static_cast<size_t>(width_), 0);
      add_scores(row.values, row.gradients.data());
      find_gradients(texts[i], priors, row);
    }
  });
  // Each thread changes buckets of its own, in the order of the texts: no two write the same, and sums have an order.
  const int64_t buckets = config_.buckets;
  const float characters = orders_of(config_).words.empty() ? 1 : characters_share;
  parallel_for(count < texts_per_thread ? 1 : buckets, buckets / std::max(threads(), 1),
               [&](int64_t begin, int64_t end) {
                 if (count < texts_per_thread) end = buckets;
                 for (int64_t i = 0; i < count; ++i) {
                   const Row& row = group_[static_cast<size_t>(i)];
                   step(row, row.values.words_in(begin, end), 1);
                   step(row, row.values.characters_in(begin, end), characters);
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
  group_.resize(max_at_once);
  scratches_.resize(static_cast<size_t>(team_size()));
  const auto text_count = static_cast<int64_t>(texts.size());
  for (int64_t first = 0; first < text_count;) {
    stop_point();
    const int64_t count = std::min(std::clamp<int64_t>(texts_ / 8, 1, max_at_once), text_count - first);
    learn_group(texts.data() + first, count);
    first += count;
  }
}

std::vector<std::vector<float>> OnlineClassifier::logits(const std::vector<std::string>& texts) const {
  std::vector<std::vector<float>> rows(texts.size());
  const std::vector<double> priors = bias();
  parallel_for(static_cast<int64_t>(texts.size()), texts_per_thread, [&](int64_t begin, int64_t end) {
    RowScratch scratch;
    RowValues values;
    std::vector<float> scores(static_cast<size_t>(width_));
    for (int64_t i = begin; i < end; ++i) {
      stop_point();
      read_row(texts[static_cast<size_t>(i)], 0, scratch, values);
      std::fill(scores.begin(), scores.end(), 0.0F);
      add_scores(values, scores.data());
      std::vector<float>& row = rows[static_cast<size_t>(i)];
      for (int64_t c = 0; c < classes_; ++c) {
        const double score = columns_ == 1 ? static_cast<double>(c == 1 ? scores[0] : -scores[0])
                                           : static_cast<double>(scores[static_cast<size_t>(c)]);
        row.push_back(static_cast<float>(score + priors[static_cast<size_t>(c)]));
      }
    }
  });
  return rows;
}

void OnlineClassifier::fill(ParamStore& params) const {
  const auto values_of = [&](const char* name) { return params.values() + params.find(name).offset; };
  real *const scales = values_of("linear.scale"), *const weights = values_of("linear.weight");
  const std::vector<double> priors = bias();
  std::copy(priors.begin(), priors.end(), values_of("linear.bias"));
  if (multi_label_) std::fill_n(values_of("linear.threshold"), classes_, static_cast<real>(default_threshold));
  const double log_texts = math::log(static_cast<double>(1 + texts_)) + 1;
  for (int64_t f = 0; f < config_.buckets; ++f) {
    const uint32_t texts_with = texts_with_[static_cast<size_t>(f)];
    if (texts_with < config_.min_texts) continue;
    scales[f] = static_cast<real>(log_texts - logarithm(texts_with));
    const float* const from = weights_.get() + f * width_;
    for (int64_t c = 0; c < columns_; ++c) weights[f * classes_ + (columns_ == 1 ? 1 : c)] = static_cast<real>(from[c]);
    if (columns_ == 1) weights[f * classes_] = static_cast<real>(0 - from[0]);  // not -0.0, which would be written
  }
}

std::string OnlineClassifier::write(const std::string& path) const {
  std::vector<unsigned char> bits(static_cast<size_t>(StoredRows::bytes_of(config_.buckets)), 0);
  for (int64_t f = 0; f < config_.buckets; ++f)
    if (texts_with_[static_cast<size_t>(f)] > 0)
      bits[static_cast<size_t>(f / 8)] |= static_cast<unsigned char>(1U << (f % 8));
  const auto used = std::make_shared<const StoredRows>(config_.buckets, std::move(bits));
  return write_safetensors(path,
                           {{"accumulators", DType::f32, {config_.buckets}, accumulators_.get(), used},
                            {"texts_with", DType::i32, {config_.buckets}, texts_with_.get(), used},
                            {"classes", DType::f64, {classes_}, counts_of_classes_.data()},
                            {"weight_of_texts", DType::f64, {1}, &weight_of_texts_}},
                           {{"texts", std::to_string(texts_)}});
}

/// Calls take(bucket, row) for the rows of a tensor of (buckets, columns), some of which are in memory at once.
template <class T, class Take>
void OnlineClassifier::for_rows(const FileTensor& tensor, int64_t columns, const Take& take) const {
  constexpr int64_t piece = 1 << 16;
  check(tensor.size == config_.buckets * columns, "tensor {}: {} elements for {} buckets", tensor.name, tensor.size,
        config_.buckets);
  std::vector<T> piece_values(static_cast<size_t>(piece * columns));
  for (int64_t first = 0; first < config_.buckets; first += piece) {
    const int64_t last = std::min(first + piece, config_.buckets);
    tensor.copy_part(first * columns, last * columns, piece_values.data());
    for (int64_t f = first; f < last; ++f) take(f, piece_values.data() + (f - first) * columns);
  }
}

void OnlineClassifier::read(const SafetensorsFile& params, const SafetensorsFile* rest) {
  for_rows<float>(params.at("linear.weight"), classes_, [&](int64_t f, const float* row) {
    float* const to = weights_.get() + f * width_;
    for (int64_t c = 0; c < columns_; ++c)
      if (const float weight = row[columns_ == 1 ? 1 : c]; weight != 0) to[c] = weight;
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
  for_rows<float>(rest.at("accumulators"), 1, [&](int64_t f, const float* sum) {
    if (*sum != 0) accumulators_[static_cast<size_t>(f)] = *sum;
  });
  for_rows<double>(rest.at("texts_with"), 1, [&](int64_t f, const double* count) {
    if (*count != 0) texts_with_[static_cast<size_t>(f)] = static_cast<uint32_t>(*count);
  });
}

/// Estimates what solving for the weights knew. Scales tell how many texts had each n-gram, if the rarest ones were in
/// min_texts texts, and the bias tells the shares of the classes. Accumulators are what they are on average after so
/// many texts.
void OnlineClassifier::guess_rest(const SafetensorsFile& params) {
  double largest = 1;
  const FileTensor& scales = params.at("linear.scale");
  for_rows<float>(scales, 1,
                  [&](int64_t, const float* scale) { largest = std::max(largest, static_cast<double>(*scale)); });
  const auto rarest = static_cast<double>(config_.min_texts);
  const double texts_and_one = (1 + rarest) * math::exp(largest - 1);
  texts_ = static_cast<int64_t>(std::lround(texts_and_one)) - 1;
  weight_of_texts_ = static_cast<double>(texts_);
  for_rows<float>(scales, 1, [&](int64_t f, const float* scale) {
    if (*scale == 0) return;
    const double with = std::max(texts_and_one / math::exp(static_cast<double>(*scale) - 1) - 1, rarest);
    texts_with_[static_cast<size_t>(f)] = static_cast<uint32_t>(std::lround(with));
    accumulators_[static_cast<size_t>(f)] = static_cast<float>(default_squares * with);
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
