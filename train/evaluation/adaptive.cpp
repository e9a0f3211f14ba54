// Texts are scored one by one, in the order of the split. The cache is a ring of unit states, whose cosines with new
// states are one product. Dynamic evaluation keeps the trained weights and the mean squares of gradients beside the
// store. tests/train/test_adaptive.cpp.
#include "train/evaluation/adaptive.hpp"

#include <algorithm>
#include <cmath>

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/base/math.hpp"
#include "core/fused/fused.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {
namespace {

/// How far one text moves a weight, in rates. A word that none of the training texts had whose gradients tell the scale
/// would move its weights by hundreds of rates.
constexpr double longest_step = 10;

/// The rows of a split's batches in the order of the examples, which is that of the text.
class RowsInOrder {
 public:
  explicit RowsInOrder(const BatchSource& split) : split_(split) {
    for (int64_t index = 0; index < split.batches_per_epoch(0); ++index) {
      const Ids examples = split.batch(0, index).examples;
      for (int64_t row = 0; row < examples.size(); ++row) places_.push_back({examples[row], index, row});
    }
    std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) { return a.example < b.example; });
  }
  int64_t size() const { return static_cast<int64_t>(places_.size()); }
  Batch row(int64_t i) {
    const Place& place = places_[static_cast<size_t>(i)];
    if (place.batch != held_) batch_ = split_.batch(0, held_ = place.batch);
    return rows_of(batch_, place.row, place.row + 1);
  }

 private:
  struct Place {
    int64_t example, batch, row;
  };
  const BatchSource& split_;
  std::vector<Place> places_;
  int64_t held_ = -1;  // the number of batch_
  Batch batch_;
};

/// (n, D), each row divided by its norm.
Array with_unit_rows(const Array& states) {
  Array unit(states.shape());
  const int64_t width = states.dim(1);
  for (int64_t row = 0; row < states.dim(0); ++row) {
    const real* const from = states.data() + row * width;
    double squares = 0;
    for (int64_t i = 0; i < width; ++i) squares += static_cast<double>(from[i]) * static_cast<double>(from[i]);
    const double factor = squares > 0 ? 1 / std::sqrt(squares) : 0;
    for (int64_t i = 0; i < width; ++i)
      unit.mutable_data()[row * width + i] = static_cast<real>(static_cast<double>(from[i]) * factor);
  }
  return unit;
}

/// The votes of remembered states for a label, and of all of them.
struct Votes {
  double label = 0, all = 0;
  void add(double cosine, double sharpness, bool of_label) {
    const double vote = math::exp(sharpness * (cosine - 1));
    all += vote;
    if (of_label) label += vote;
  }
};

/// The natural logarithms of the labels' probabilities.
std::vector<double> log_probabilities(const Array& logits, const Ids& labels) {
  std::vector<double> result(static_cast<size_t>(labels.size()));
  const int64_t vocabulary = logits.dim(1);
  parallel_units(labels.size(), [&](int64_t row) {
    const real* const row_logits = logits.data() + row * vocabulary;
    const double largest = static_cast<double>(*std::max_element(row_logits, row_logits + vocabulary));
    double sum = 0;
    for (int64_t v = 0; v < vocabulary; ++v) sum += math::exp(static_cast<double>(row_logits[v]) - largest);
    result[static_cast<size_t>(row)] = static_cast<double>(row_logits[labels[row]]) - largest - math::log(sum);
  });
  return result;
}

}  // namespace

ContinuousCache::ContinuousCache(int64_t size, int64_t width)
    : states_(Shape{size, width}), labels_(static_cast<size_t>(size), -1) {
  check(size > 0, "cache: {} tokens", size);
}

std::vector<std::vector<double>> ContinuousCache::score(const Array& states, const Ids& labels,
                                                        const std::vector<CacheRule>& rules) {
  const TapePause pause;
  const int64_t count = states.dim(0), size = states_.dim(0);
  const Array unit = with_unit_rows(states);
  const Array with_remembered = linear(Var(unit), Var(states_)).value(),
              with_each_other = linear(Var(unit), Var(unit)).value();
  std::vector<std::vector<double>> probabilities(rules.size(), std::vector<double>(static_cast<size_t>(count)));
  parallel_units(count, [&](int64_t row) {
    for (size_t r = 0; r < rules.size(); ++r) {
      Votes votes;
      const int64_t oldest = filled_ < size ? 0 : next_;
      for (int64_t age = std::max<int64_t>(0, filled_ + row - size); age < filled_; ++age) {
        const int64_t i = (oldest + age) % size;
        votes.add(static_cast<double>(with_remembered[row * size + i]), rules[r].sharpness,
                  labels_[static_cast<size_t>(i)] == labels[row]);
      }
      // Of this call's states, the earlier ones count: what followed them is known before this one is scored.
      for (int64_t i = std::max<int64_t>(0, row - size); i < row; ++i)
        votes.add(static_cast<double>(with_each_other[row * count + i]), rules[r].sharpness, labels[i] == labels[row]);
      probabilities[r][static_cast<size_t>(row)] = votes.all > 0 ? votes.label / votes.all : 0;
    }
  });
  remember(unit, labels);
  return probabilities;
}

void ContinuousCache::remember(const Array& states, const Ids& labels) {
  const int64_t count = states.dim(0), size = states_.dim(0), width = states_.dim(1);
  for (int64_t row = std::max<int64_t>(0, count - size); row < count; ++row) {
    std::copy_n(states.data() + row * width, width, states_.mutable_data() + next_ * width);
    labels_[static_cast<size_t>(next_)] = labels[row];
    next_ = (next_ + 1) % size;
    filled_ = std::min(filled_ + 1, size);
  }
}

DynamicEvaluation::DynamicEvaluation(const Task& task, ParamStore& params, const BatchSource& training,
                                     const AdaptiveOptions& options, const LogLine& log)
    : task_(task),
      params_(params),
      options_(options),
      start_(params.values(), params.values() + params.dense_size()),
      squares_(start_.size(), 0),
      table_squares_(params.grad_block().tables().size(), 0),
      table_counts_(table_squares_.size(), 0) {
  const int64_t batches = training.batches_per_epoch(0), texts = std::min(options.statistics, batches);
  check(texts > 0, "dynamic evaluation: {} training texts", texts);
  Progress progress(log, "gradients of training texts", static_cast<double>(texts), in_texts);
  for (int64_t i = 0; i < texts; ++i) {
    add_gradient(rows_of(training.batch(0, batches * i / texts), 0, 1));
    note_squares();
    params_.clear_grads();
    progress.add(1);
  }
  double sum = 0;
  for (float& square : squares_) sum += square = std::sqrt(square / static_cast<float>(texts));
  mean_rms_ = sum / static_cast<double>(std::max<size_t>(squares_.size(), 1));
  if (!std::isfinite(mean_rms_))
    throw Error("the gradients of the training texts are not finite: the model is damaged");
  if (mean_rms_ == 0)
    throw Error("the gradients of the training texts are 0: there is no scale for the rate of dynamic evaluation");
  for (size_t i = 0; i < table_squares_.size(); ++i)
    table_squares_[i] = table_counts_[i] > 0 ? std::sqrt(table_squares_[i] / table_counts_[i]) : 0;
}

TaskLoss DynamicEvaluation::add_gradient(const Batch& text) {
  TapeScope scope;
  const TaskLoss loss = task_.loss(text, Context{Segments(text.segment_ids), false, 0, text.examples});
  if (loss.targets > 0) scope.tape().backward(loss.sum * (1.0 / static_cast<double>(loss.targets)));
  return loss;
}

void DynamicEvaluation::note_squares() {
  const real* const grads = params_.grads();
  parallel_for(params_.dense_size(), 1 << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) squares_[static_cast<size_t>(i)] += static_cast<float>(grads[i] * grads[i]);
  });
  auto& tables = params_.grad_block().tables();
  for (size_t i = 0; i < tables.size(); ++i) {
    const Array& values = tables[i].values();
    for (int64_t at = 0; at < values.size() && !tables[i].empty(); ++at)
      table_squares_[i] += static_cast<double>(values[at]) * static_cast<double>(values[at]);
    if (!tables[i].empty()) table_counts_[i] += static_cast<double>(values.size());
  }
}

double DynamicEvaluation::learn(const Batch& text) {
  const TaskLoss loss = add_gradient(text);
  real* const values = params_.values();
  const real* const grads = params_.grads();
  const double floor = 1e-2 * mean_rms_;  // or weights that training hardly moved would jump
  const auto step = [&](real gradient, double scale) {
    return options_.rate * std::clamp(static_cast<double>(gradient) / scale, -longest_step, longest_step);
  };
  parallel_for(params_.dense_size(), 1 << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<size_t>(i);
      const double rms = squares_[at];
      const double back = std::min(options_.decay * rms / mean_rms_, 1.0);
      const double value = values[i];
      values[i] = static_cast<real>(value - step(grads[i], rms + floor) + back * (start_[at] - value));
    }
  });
  for (const Param& param : params_.params()) {
    if (param.table < 0) continue;
    const RowGrads& rows = params_.row_grads(param);
    const double rms = table_squares_[static_cast<size_t>(param.table)];
    if (rows.empty() || rms == 0) continue;
    const int64_t width = rows.values().dim(1);
    for (int64_t i = 0; i < rows.count(); ++i)
      for (int64_t c = 0; c < width; ++c)
        values[param.offset + rows.rows()[static_cast<size_t>(i)] * width + c] -=
            static_cast<real>(step(rows.values()[i * width + c], rms));
  }
  params_.clear_grads();
  return static_cast<double>(loss.sum.value().item());
}

AdaptiveScorer::AdaptiveScorer(const Model& model, ParamStore& params, const BatchSource* training,
                               const AdaptiveOptions& options, const LogLine& log)
    : model_(model), rules_(options.rules) {
  if (options.rate > 0) dynamic_.emplace(model, params, *training, options, log);
  if (options.cache > 0) cache_.emplace(options.cache, model.stack().config().width);
}

void AdaptiveScorer::add_cached(const Batch& text, AdaptiveEvaluation& sums) {
  const TapePause pause;
  std::vector<int32_t> places, labels;
  for (int64_t i = 0; i < text.labels.size(); ++i) {
    if (text.labels[i] == ignored_target) continue;
    places.push_back(static_cast<int32_t>(i));
    labels.push_back(text.labels[i]);
  }
  if (labels.empty()) return;
  const Ids followed(Shape{static_cast<int64_t>(labels.size())}, labels);
  const Var states = model_.states(text.tokens, places, Context{Segments(text.segment_ids)});
  const std::vector<double> plain = log_probabilities(model_.state_logits(states).value(), followed);
  const auto cached = cache_->score(states.value(), followed, rules_);
  for (size_t r = 0; r < rules_.size(); ++r)
    for (size_t i = 0; i < plain.size(); ++i) {
      const double of_cache = cached[r][i], weight = rules_[r].weight;
      sums.loss_sums[r] -= math::log((1 - weight) * math::exp(plain[i]) + weight * of_cache);
    }
}

void AdaptiveScorer::score(const Batch& text, AdaptiveEvaluation& sums) {
  sums.loss_sums.resize(cache_ ? rules_.size() : 1);
  if (cache_) add_cached(text, sums);
  if (dynamic_) {
    const double loss = dynamic_->learn(text);
    if (!cache_) sums.loss_sums.front() += loss;
  } else if (!cache_) {
    const TapePause pause;
    sums.loss_sums.front() +=
        static_cast<double>(model_.loss(text, Context{Segments(text.segment_ids)}).sum.value().item());
  }
  sums.targets += std::count_if(text.labels.data(), text.labels.data() + text.labels.size(),
                                [](int32_t label) { return label != ignored_target; });
}

AdaptiveEvaluation evaluate_adaptive(const Model& model, ParamStore& params, const BatchSource& split,
                                     const BatchSource* training, const AdaptiveOptions& options, const LogLine& log) {
  AdaptiveEvaluation sums;
  AdaptiveScorer scorer(model, params, training, options, log);
  RowsInOrder rows(split);
  Progress progress(log, "evaluating", static_cast<double>(rows.size()), in_shares);
  for (int64_t i = 0; i < rows.size(); ++i) {
    scorer.score(rows.row(i), sums);
    progress.add(1);
  }
  if (sums.targets == 0) throw Error("evaluation: there are no targets");
  return sums;
}

}  // namespace capstan
