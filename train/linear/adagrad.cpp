// A batch is computed on all threads with the same weights; then each thread updates the buckets that it has, in the
// order of the examples, so that no two write the same and sums have a fixed order. Loops are compiled for some small
// numbers of classes. tests/train/linear/test_linear.cpp.
#include "train/linear/adagrad.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/stop.hpp"
#include "core/kernels/activation.hpp"
#include "core/machine/parallel.hpp"
#include "models/losses/class_weights.hpp"

namespace capstan {
namespace {

constexpr int64_t floats_per_vector = 8;  // adagrad_width() is a multiple, but for one column
constexpr float characters_share = 0.5F;  // of the rate: a text has many more n-grams of characters than of words
constexpr float initial_accumulator = 1;  // where the sums of squared gradients begin
constexpr int64_t examples_per_unit = 8;  // that a thread computes together

/// out[k] += x W for the entries x of a row. A bucket has `blocks` * floats_per_vector weights.
template <int blocks>
void add_scores(const std::vector<NgramValue>& row, const float* weights, float* out) {
  constexpr int64_t width = blocks * floats_per_vector;
  float sums[width] = {};
  for (size_t i = 0; i < row.size(); ++i) {
    if (i + rows_ahead < row.size()) {
      const float* const next = weights + row[i + rows_ahead].bucket * width;
      for (int64_t k = 0; k < width; k += 16) __builtin_prefetch(next + k);
    }
    const float* const from = weights + row[i].bucket * width;
    for (int64_t k = 0; k < width; ++k) sums[k] += row[i].value * from[k];
  }
  for (int64_t k = 0; k < width; ++k) out[k] += sums[k];
}

/// W[bucket] -= rate x gradients / sqrt(accumulator), with `blocks` * floats_per_vector weights for each bucket, for a
/// part of a row.
template <int blocks>
void step_back(const NgramValue* begin, const NgramValue* end, const float* gradients, float squares, float rate,
               float* weights, float* accumulators) {
  constexpr int64_t width = blocks * floats_per_vector;
  float fixed[width];
  std::copy_n(gradients, width, fixed);
  for (const NgramValue* entry = begin; entry != end; ++entry) {
    if (entry + rows_ahead < end) {
      const uint32_t next = entry[rows_ahead].bucket;
      for (int64_t k = 0; k < width; k += 16) __builtin_prefetch(weights + next * width + k, 1);
      __builtin_prefetch(accumulators + next, 1);
    }
    if (entry->value == 0) continue;
    float& accumulator = accumulators[entry->bucket];
    accumulator += squares * entry->value * entry->value;
    const float step = rate * entry->value / std::sqrt(initial_accumulator + accumulator);
    float* const to = weights + entry->bucket * width;
    for (int64_t k = 0; k < width; ++k) to[k] -= step * fixed[k];
  }
}

/// to += factor x from, of more classes than the functions above have room for, or one.
void add_row(float factor, const float* from, int64_t width, float* to) {
#pragma omp simd
  for (int64_t k = 0; k < width; ++k) to[k] += factor * from[k];
}

}  // namespace

AdaGrad::AdaGrad(const LinearClassifierConfig& config, int64_t classes, bool multi_label,
                 std::vector<double> class_weights)
    : buckets_(config.buckets),
      classes_(classes),
      columns_(adagrad_columns(classes, multi_label)),
      width_(adagrad_width(columns_)),
      multi_label_(multi_label),
      characters_share_(orders_of(config).words.empty() ? 1 : characters_share),
      class_weights_(std::move(class_weights)),
      log_weights_(log_weights_of(class_weights_)),
      weights_(zero_pages<float>(buckets_ * width_)),
      accumulators_(zero_pages<float>(buckets_)) {}

void AdaGrad::learn(int64_t count, float rate, const std::vector<double>& bias, const ReadExample& read) {
  check(count <= adagrad_batch, "AdaGrad: a batch of {} examples", count);
  batch_.resize(static_cast<size_t>(count));
  read_batch(bias, read);
  for_parts([&](const AdaGradExample& example, int64_t first, int64_t last) {
    if (example.squares == 0) return;
    const auto [words, characters] = example.values.in(first, last);
    step(words, example, 1, rate);
    step(characters, example, characters_share_, rate);
  });
}

void AdaGrad::for_parts(const VisitPart& visit) {
  constexpr size_t few = 16;  // examples, which take less time than to start a second thread
  const auto visit_all = [&](int64_t first, int64_t last) {
    for (const AdaGradExample& example : batch_) visit(example, first, last);
  };
  if (batch_.size() < few) return visit_all(0, buckets_);
  if (divided_for_ < batch_.size()) divide_buckets();
  parallel_each(static_cast<int64_t>(borders_.size()) - 1, 1, [&](int64_t part) {
    visit_all(borders_[static_cast<size_t>(part)], borders_[static_cast<size_t>(part) + 1]);
  });
}

/// Reads the examples of a batch, and finds the gradients of their losses.
void AdaGrad::read_batch(const std::vector<double>& bias, const ReadExample& read) {
  const auto count = static_cast<int64_t>(batch_.size());
  scratches_.resize(std::max(scratches_.size(), static_cast<size_t>(team_size())));
  parallel_units((count + examples_per_unit - 1) / examples_per_unit, [&](int64_t unit) {
    RowScratch& scratch = scratches_[static_cast<size_t>(thread_index())];
    const int64_t first = unit * examples_per_unit;
    for (int64_t i = first; i < std::min(count, first + examples_per_unit); ++i) {
      AdaGradExample& example = batch_[static_cast<size_t>(i)];
      read(i, scratch, example);
      example.gradients.assign(static_cast<size_t>(width_), 0);
      add_scores(example.values.all, example.gradients.data());
      find_gradients(bias, example);
    }
  });
}

/// Divides the buckets among the threads, so that each has about as many entries of the batch. Only speed depends on
/// it.
void AdaGrad::divide_buckets() {
  constexpr int64_t max_pieces = 1 << 12;  // buckets are counted in so many pieces: even shares need no finer ones
  const int64_t buckets = buckets_, pieces = std::min(max_pieces, buckets), parts = team_size();
  std::vector<int64_t> entries(static_cast<size_t>(pieces), 0);
  int64_t total = 0, before = 0;
  for (const AdaGradExample& example : batch_)
    for (const NgramValue& entry : example.values.all) {
      ++entries[static_cast<size_t>(entry.bucket / (buckets / pieces))];
      ++total;
    }
  borders_.assign(1, 0);
  for (int64_t piece = 0; piece < pieces && static_cast<int64_t>(borders_.size()) < parts; ++piece) {
    before += entries[static_cast<size_t>(piece)];
    if (before * parts >= total * static_cast<int64_t>(borders_.size()))
      borders_.push_back((piece + 1) * (buckets / pieces));
  }
  borders_.push_back(buckets);
  divided_for_ = batch_.size();
}

void AdaGrad::add_scores(const std::vector<NgramValue>& values, float* scores) const {
  const float* const weights = weights_.get();
  switch (width_ / floats_per_vector) {
    case 0: {
      float sum = 0;
      for (const NgramValue& entry : values) sum += entry.value * weights[entry.bucket];
      *scores += sum;
      return;
    }
    case 1:
      return capstan::add_scores<1>(values, weights, scores);
    case 2:
      return capstan::add_scores<2>(values, weights, scores);
    case 3:
      return capstan::add_scores<3>(values, weights, scores);
    case 4:
      return capstan::add_scores<4>(values, weights, scores);
    default:
      for (const NgramValue& entry : values) add_row(entry.value, row(entry.bucket), width_, scores);
  }
}

std::vector<float> AdaGrad::scores(int64_t count, const ReadRow& read) const {
  std::vector<float> scores(static_cast<size_t>(count * columns_));
  parallel_for(count, examples_per_unit, [&](int64_t begin, int64_t end) {
    RowScratch scratch;
    RowValues values;
    std::vector<float> of_row(static_cast<size_t>(width_));
    for (int64_t i = begin; i < end; ++i) {
      stop_point();
      read(i, scratch, values);
      std::fill(of_row.begin(), of_row.end(), 0.0F);
      add_scores(values.all, of_row.data());
      std::copy_n(of_row.begin(), columns_, scores.begin() + i * columns_);
    }
  });
  return scores;
}

/// Updates the weights by a part of an example. `share` has the effect of multiplying its entries, in training and
/// prediction, by the root of it.
void AdaGrad::step(const NgramValues& part, const AdaGradExample& example, float share, float rate) {
  rate *= share;
  const float squares = example.squares * share;
  float *const weights = weights_.get(), *const accumulators = accumulators_.get();
  const float* const gradients = example.gradients.data();
  const auto& [begin, end] = part;
  switch (width_ / floats_per_vector) {
    case 1:
      return step_back<1>(begin, end, gradients, squares, rate, weights, accumulators);
    case 2:
      return step_back<2>(begin, end, gradients, squares, rate, weights, accumulators);
    case 3:
      return step_back<3>(begin, end, gradients, squares, rate, weights, accumulators);
    case 4:
      return step_back<4>(begin, end, gradients, squares, rate, weights, accumulators);
    default:
      for (const NgramValue* entry = begin; entry != end; ++entry) {
        if (entry->value == 0) continue;
        float& accumulator = accumulators[entry->bucket];
        accumulator += squares * entry->value * entry->value;
        add_row(-rate * entry->value / std::sqrt(initial_accumulator + accumulator), gradients, width_,
                row(entry->bucket));
      }
  }
}

/// Turns the scores in example.gradients into the derivatives of the example's loss by them.
void AdaGrad::find_gradients(const std::vector<double>& bias, AdaGradExample& example) const {
  float* const gradients = example.gradients.data();
  const auto shift = [&](size_t c) { return log_weights_.empty() ? 0 : log_weights_[c]; };
  const auto factor = [&](int32_t label) {
    return static_cast<float>(class_weights_.empty() ? 1 : class_weights_[static_cast<size_t>(label)]);
  };
  if (columns_ == 1) {  // the probability of the second class is sigmoid(2 x logit)
    gradients[0] = 2 * (gradients[0] + static_cast<float>(bias[1] + (shift(1) - shift(0)) / 2));
    kernels::apply(kernels::Function::sigmoid, gradients, gradients, 1);
    gradients[0] = 2 * (gradients[0] - static_cast<float>(example.labels.front()));
  } else {
    for (int64_t c = 0; c < columns_; ++c)
      gradients[c] += static_cast<float>(bias[static_cast<size_t>(c)] + shift(static_cast<size_t>(c)));
    if (multi_label_) {
      kernels::apply(kernels::Function::sigmoid, gradients, gradients, columns_);
    } else {
      const float most = *std::max_element(gradients, gradients + columns_);
      for (int64_t c = 0; c < columns_; ++c) gradients[c] -= most;
      kernels::apply(kernels::Function::exp, gradients, gradients, columns_);
      float sum = 0;
      for (int64_t c = 0; c < columns_; ++c) sum += gradients[c];
      for (int64_t c = 0; c < columns_; ++c) gradients[c] /= sum;
    }
    for (const int32_t label : example.labels) gradients[label] -= 1;
  }
  const float of_all = static_cast<float>(example.weight) * (multi_label_ ? 1 : factor(example.labels.front()));
  if (of_all != 1)
    for (int64_t c = 0; c < columns_; ++c) gradients[c] *= of_all;
  if (multi_label_ && !class_weights_.empty())
    for (const int32_t label : example.labels) gradients[label] *= factor(label);
  example.squares = 0;
  for (int64_t c = 0; c < columns_; ++c) example.squares += gradients[c] * gradients[c];
}

std::vector<double> AdaGrad::logits(const float* scores, double inverse_temperature,
                                    const std::vector<double>& bias) const {
  std::vector<double> result(static_cast<size_t>(classes_));
  for (int64_t c = 0; c < columns_; ++c) {
    const auto of_class = static_cast<size_t>(columns_ == 1 ? 1 : c);
    result[of_class] = inverse_temperature * static_cast<double>(scores[c]) + bias[of_class];
  }
  if (columns_ == 1) result[0] = -result[1];
  return result;
}

void AdaGrad::write_weights(double inverse_temperature, real* weight) const {
  parallel_each(buckets_, elementwise_grain, [&](int64_t f) {
    for (int64_t c = 0; c < columns_; ++c) {
      const double value = inverse_temperature * static_cast<double>(row(f)[c]);
      if (value == 0) continue;
      weight[f * classes_ + (columns_ == 1 ? 1 : c)] = static_cast<real>(value);
      if (columns_ == 1) weight[f * classes_] = static_cast<real>(-value);
    }
  });
}

}  // namespace capstan
