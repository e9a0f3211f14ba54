// 256 rows are computed on all threads with the same weights; then each thread updates the buckets that it has, in the
// order of the rows, so that no two write the same and sums have a fixed order. Loops are compiled for some small
// numbers of classes. tests/train/linear/test_fit_adagrad.cpp.
#include "train/linear/adagrad.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/random.hpp"
#include "core/base/stop.hpp"
#include "core/kernels/activation.hpp"
#include "core/machine/parallel.hpp"
#include "train/linear/calibration.hpp"

namespace capstan {
namespace {

/// Rows whose gradients are computed with the same weights, on all threads: as accurate as one row at a time.
constexpr int64_t rows_at_once = 256, rows_per_unit = 8;

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
    float& accumulator = accumulators[entry->bucket];
    accumulator += squares * entry->value * entry->value;
    const float step = rate * entry->value / std::sqrt(accumulator);
    float* const to = weights + entry->bucket * width;
    for (int64_t k = 0; k < width; ++k) to[k] -= step * fixed[k];
  }
}

/// to += factor x from, of more classes than the functions above have room for.
void add_row(float factor, const float* from, int64_t width, float* to) {
#pragma omp simd
  for (int64_t k = 0; k < width; ++k) to[k] += factor * from[k];
}

}  // namespace

AdaGradSolver::AdaGradSolver(const NgramRows& rows, uint64_t seed)
    : rows_(rows),
      seed_(seed),
      loss_(rows.multi_label() ? Loss::logistic
            : rows.is_binary() ? Loss::hinge
                               : Loss::softmax),
      columns_(rows.is_binary() ? 1 : rows.classes()),
      width_(width_of(columns_)),
      characters_share_(orders_of(rows.config()).words.empty() ? 1 : characters_share) {
  const std::vector<double> priors = log_priors(rows);
  log_priors_ = columns_ == 1 ? std::vector<double>{priors[1]} : priors;
  log_weights_ = log_weights_of(rows.class_weights());
  if (columns_ == 1 && !log_weights_.empty()) log_weights_ = {(log_weights_[1] - log_weights_[0]) / 2};
  weights_.assign(static_cast<size_t>(rows_.config().buckets * width_), 0);
  accumulators_.assign(static_cast<size_t>(rows_.config().buckets), initial_accumulator);
}

void AdaGradSolver::run(const std::vector<uint32_t>& learnt, double rate, AdaGradPosition& position, double work,
                        Progress* progress, const std::function<void()>& save) {
  const auto count = static_cast<int64_t>(learnt.size());
  if (position.epoch == 0 && position.row == 0) {
    std::fill(weights_.begin(), weights_.end(), 0.0F);
    std::fill(accumulators_.begin(), accumulators_.end(), initial_accumulator);
  }
  inverse_temperature_ = loss_ == Loss::hinge ? position.inverse_temperature : 1;
  const RandomKey key = random_key(seed_, "order of rows");
  batch_.resize(static_cast<size_t>(rows_at_once));
  borders_.clear();
  scratches_.resize(static_cast<size_t>(team_size()));
  const double total_rows = static_cast<double>(adagrad_epochs * std::max<int64_t>(count, 1));
  const auto work_of = [&](int64_t rows) { return work * static_cast<double>(rows) / total_rows; };
  if (progress != nullptr) progress->skip(work_of(position.epoch * count + position.row));
  for (; position.epoch < adagrad_epochs; ++position.epoch, position.row = 0)
    for (; position.row < count; position.row += rows_at_once) {
      stop_point();
      save();
      const double done = static_cast<double>(position.epoch * count + position.row) / total_rows;
      std::vector<uint32_t> batch_rows;
      for (int64_t i = position.row; i < std::min(position.row + rows_at_once, count); ++i)
        batch_rows.push_back(learnt[static_cast<size_t>(permuted_place(i, count, key, position.epoch))]);
      learn(batch_rows, static_cast<float>(rate * (1 - done)));
      if (progress != nullptr) progress->add(work_of(static_cast<int64_t>(batch_rows.size())));
    }
}

void AdaGradSolver::write(FileWriter& to) const {
  std::vector<float> numbers;
  const auto flush = [&] {
    to.write(numbers.data(), numbers.size() * sizeof(float));
    numbers.clear();
  };
  for_used([&](int64_t f) {
    const auto first = weights_.begin() + f * width_;
    numbers.insert(numbers.end(), first, first + columns_);
    numbers.push_back(accumulators_[static_cast<size_t>(f)]);
    if (numbers.size() > size_t{1} << 18) flush();
  });
  flush();
}

bool AdaGradSolver::read(WorkFile::Saved& from) {
  std::vector<float> numbers(static_cast<size_t>(columns_) + 1);
  bool whole = true;
  for_used([&](int64_t f) {
    whole = whole && from.read(numbers.data(), numbers.size() * sizeof(float));
    std::copy_n(numbers.begin(), columns_, weights_.begin() + f * width_);
    accumulators_[static_cast<size_t>(f)] = numbers.back();
  });
  return whole;
}

std::vector<float> AdaGradSolver::scores(const std::vector<uint32_t>& some_rows) const {
  std::vector<float> result(some_rows.size() * static_cast<size_t>(columns_));
  parallel_for(static_cast<int64_t>(some_rows.size()), rows_per_unit, [&](int64_t begin, int64_t end) {
    RowScratch scratch;
    RowValues values;
    std::vector<float> row_scores(static_cast<size_t>(width_));
    for (int64_t i = begin; i < end; ++i) {
      stop_point();
      rows_.read_row(some_rows[static_cast<size_t>(i)], scratch, values);
      std::fill(row_scores.begin(), row_scores.end(), 0.0F);
      score(values.all, row_scores.data());
      std::copy_n(row_scores.begin(), columns_, result.begin() + i * columns_);
    }
  });
  return result;
}

std::vector<double> AdaGradSolver::logits(const float* scores, double inverse_temperature) const {
  std::vector<double> result(static_cast<size_t>(rows_.classes()));
  for (int64_t c = 0; c < columns_; ++c)
    result[static_cast<size_t>(columns_ == 1 ? 1 : c)] =
        inverse_temperature * static_cast<double>(scores[c]) + log_priors_[static_cast<size_t>(c)];
  if (columns_ == 1) result[0] = -result[1];
  return result;
}

double AdaGradSolver::share_of_words() const {
  double words = 0, all = 1e-9;
  for (const Row& row : batch_) {
    words += static_cast<double>(row.values.words);
    all += static_cast<double>(row.values.all.size());
  }
  return words / all;
}

void AdaGradSolver::take(double inverse_temperature, real* weight) {
  const int64_t classes = rows_.classes();
  parallel_each(rows_.config().buckets, elementwise_grain, [&](int64_t f) {
    for (int64_t c = 0; c < columns_; ++c) {
      const double value = inverse_temperature * static_cast<double>(weights_[static_cast<size_t>(f * width_ + c)]);
      weight[f * classes + (columns_ == 1 ? 1 : c)] = static_cast<real>(value);
      if (columns_ == 1) weight[f * classes] = static_cast<real>(0 - value);  // not -0.0, which would be written
    }
  });
  weights_ = std::vector<float>();  // {} would keep the memory
}

/// Reads the rows of a batch, and finds the gradients of their losses.
void AdaGradSolver::read_batch(const std::vector<uint32_t>& batch_rows) {
  const auto count = static_cast<int64_t>(batch_rows.size());
  parallel_units((count + rows_per_unit - 1) / rows_per_unit, [&](int64_t unit) {
    RowScratch& scratch = scratches_[static_cast<size_t>(thread_index())];
    const int64_t first = unit * rows_per_unit;
    for (int64_t i = first; i < std::min(count, first + rows_per_unit); ++i) {
      Row& row = batch_[static_cast<size_t>(i)];
      const int64_t row_number = batch_rows[static_cast<size_t>(i)];
      rows_.read_row(row_number, scratch, row.values);
      row.gradients.assign(static_cast<size_t>(width_), 0);
      score(row.values.all, row.gradients.data());
      scores_to_gradients(row_number, row);
    }
  });
}

void AdaGradSolver::learn(const std::vector<uint32_t>& batch_rows, float rate) {
  read_batch(batch_rows);
  const auto count = static_cast<int64_t>(batch_rows.size());
  if (borders_.empty()) divide_buckets(count);
  // Each thread updates buckets of its own, in the order of the rows: no two write the same, and sums have an order.
  parallel_each(static_cast<int64_t>(borders_.size()) - 1, 1, [&](int64_t part) {
    const int64_t begin = borders_[static_cast<size_t>(part)], end = borders_[static_cast<size_t>(part) + 1];
    for (int64_t i = 0; i < count; ++i) {
      const Row& row = batch_[static_cast<size_t>(i)];
      if (row.squares == 0) continue;
      update(row.values.words_in(begin, end), row, 1, rate);
      update(row.values.characters_in(begin, end), row, characters_share_, rate);
    }
  });
}

/// Divides the buckets among the threads, so that each has about as many entries of the first batch. Only speed depends
/// on it.
void AdaGradSolver::divide_buckets(int64_t count) {
  constexpr int64_t max_pieces = 1 << 12;  // buckets are counted in so many pieces: even shares need no finer ones
  const int64_t buckets = rows_.config().buckets, pieces = std::min(max_pieces, buckets), parts = team_size();
  std::vector<int64_t> entries(static_cast<size_t>(pieces), 0);
  int64_t total = 0, before = 0;
  for (int64_t i = 0; i < count; ++i)
    for (const NgramValue& entry : batch_[static_cast<size_t>(i)].values.all) {
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
}

void AdaGradSolver::score(const std::vector<NgramValue>& row, float* out) const {
  const float* const weights = weights_.data();
  switch (width_ / floats_per_vector) {
    case 0: {
      float sum = 0;
      for (const NgramValue& entry : row) sum += entry.value * weights[entry.bucket];
      *out += sum;
      return;
    }
    case 1:
      return add_scores<1>(row, weights, out);
    case 2:
      return add_scores<2>(row, weights, out);
    case 3:
      return add_scores<3>(row, weights, out);
    case 4:
      return add_scores<4>(row, weights, out);
    default:
      for (const NgramValue& entry : row) add_row(entry.value, weights + entry.bucket * width_, width_, out);
  }
}

/// Updates the weights by a part of a row. `share` has the effect of multiplying its entries, in training and
/// prediction, by the root of it.
void AdaGradSolver::update(const NgramValues& part, const Row& row, float share, float rate) {
  rate *= share;
  const float squares = row.squares * share;
  float* const weights = weights_.data();
  const float* const gradients = row.gradients.data();
  const auto& [begin, end] = part;
  switch (width_ / floats_per_vector) {
    case 1:
      return step_back<1>(begin, end, gradients, squares, rate, weights, accumulators_.data());
    case 2:
      return step_back<2>(begin, end, gradients, squares, rate, weights, accumulators_.data());
    case 3:
      return step_back<3>(begin, end, gradients, squares, rate, weights, accumulators_.data());
    case 4:
      return step_back<4>(begin, end, gradients, squares, rate, weights, accumulators_.data());
    default:
      for (const NgramValue* entry = begin; entry != end; ++entry) {
        float& accumulator = accumulators_[entry->bucket];
        accumulator += squares * entry->value * entry->value;
        add_row(-rate * entry->value / std::sqrt(accumulator), gradients, width_, weights + entry->bucket * width_);
      }
  }
}

/// Turns the scores in row.gradients into the derivatives of the row's loss by them.
void AdaGradSolver::scores_to_gradients(int64_t row_number, Row& row) const {
  std::vector<float>& gradients = row.gradients;
  const RowLabels labels = rows_.labels(row_number);
  for (int64_t c = 0; c < columns_; ++c)
    gradients[static_cast<size_t>(c)] += static_cast<float>(
        (log_priors_[static_cast<size_t>(c)] + (log_weights_.empty() ? 0 : log_weights_[static_cast<size_t>(c)])) /
        inverse_temperature_);
  if (loss_ == Loss::hinge) {
    const float sign = labels.front() == 1 ? 1 : -1;
    gradients[0] = -2 * sign * std::max(0.0F, 1 - sign * gradients[0]);
  } else if (loss_ == Loss::softmax) {
    const float most = *std::max_element(gradients.begin(), gradients.begin() + columns_);
    for (int64_t c = 0; c < columns_; ++c) gradients[static_cast<size_t>(c)] -= most;
    kernels::apply(kernels::Function::exp, gradients.data(), gradients.data(), columns_);
    float sum = 0;
    for (int64_t c = 0; c < columns_; ++c) sum += gradients[static_cast<size_t>(c)];
    for (int64_t c = 0; c < columns_; ++c) gradients[static_cast<size_t>(c)] /= sum;
  } else {
    kernels::apply(kernels::Function::sigmoid, gradients.data(), gradients.data(), columns_);
  }
  if (loss_ != Loss::hinge)
    for (const int32_t label : labels) gradients[static_cast<size_t>(label)] -= 1;
  if (rows_.weighs_classes() || rows_.weight(row_number) != 1)
    for (int64_t c = 0; c < columns_; ++c)
      gradients[static_cast<size_t>(c)] *=
          static_cast<float>(rows_.weight(row_number, static_cast<int32_t>(columns_ == 1 ? 1 : c)));
  row.squares = 0;
  for (const float gradient : gradients) row.squares += gradient * gradient;
}

}  // namespace capstan
