// Texts are scored one by one, in the order of the split. The cache is a ring of unit states, whose cosines with new
// states are one product; its rule is the one with the least loss on the validation data. Dynamic evaluation keeps the
// trained weights and the mean squares of gradients beside the store. tests/run/test_adaptive.cpp and
// tests/cli/runs/test_eval.cpp.
#include "run/predictions/adapted.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/base/math.hpp"
#include "core/fused/linear.hpp"
#include "core/io/log.hpp"
#include "core/machine/parallel.hpp"
#include "models/generation/sampling.hpp"

namespace capstan {
namespace {

/// How far one text moves a weight, in rates. A word that none of the training texts had whose gradients tell the scale
/// would move its weights by hundreds of rates.
constexpr double longest_step = 10;
/// Training texts that tell how large gradients are.
constexpr int64_t max_statistics = 200;

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

/// The rules of a cache that are tried on the validation data: every sharpness with every weight.
std::vector<CacheRule> rules_to_try() {
  std::vector<CacheRule> rules;
  for (const double sharpness : {5.0, 10.0, 15.0, 20.0, 30.0, 45.0})
    for (const double weight : {0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5}) rules.push_back({sharpness, weight});
  return rules;
}

/// Throws Error where the options and the run do not fit.
void check_options(const SavedRun& run, const DataSource& data, Split split, const AdaptOptions& options) {
  run.model->that_predicts(Predicts::next_token);
  const auto is_share = [](double value) { return value >= 0 && value <= 1; };
  if (options.cache < 0 || options.cache > max_cached_tokens || !is_share(options.rate) || !is_share(options.decay))
    throw ConfigError(
        fmt::format("--cache: at most {} tokens; --adapt and --adapt-decay: numbers from 0 to 1", max_cached_tokens));
  if (options.rate > 0 && !data.has(Split::train))
    throw Error("--adapt: the sizes of gradients are measured on training data, which are missing: give data.train");
  if (options.cache > 0 && split != Split::valid && !data.has(Split::valid))
    throw Error(
        "--cache: its rule is chosen on validation data, of which the run has none: give --set data.valid=[FILE]");
  if (options.cache > 0 && facts_of(run.config.model).reads_sources)
    throw Error(
        "--cache: is for models that read from left to right; this one reads sources in both directions "
        "(model.prefix)");
}

/// Losses of texts that were scored, in nats: a sum for each rule of a cache, or one.
struct LossSums {
  int64_t targets = 0;
  std::vector<double> of_rule;
};

/// Adds the losses of a text's labels under each rule, and remembers its states.
void add_cached(const Model& model, const Batch& text, const std::vector<CacheRule>& rules, ContinuousCache& cache,
                LossSums& sums) {
  const TapePause pause;
  std::vector<int32_t> places, labels;
  for (int64_t i = 0; i < text.labels.size(); ++i) {
    if (text.labels[i] == ignored_target) continue;
    places.push_back(static_cast<int32_t>(i));
    labels.push_back(text.labels[i]);
  }
  if (labels.empty()) return;
  const auto count = static_cast<int64_t>(labels.size());
  const Ids followed(Shape{count}, labels);
  const Var states = model.states(text.tokens, places, Context{Segments(text.segment_ids)});
  const Array logits = model.state_logits(states).value();
  std::vector<double> plain(labels.size());
  parallel_units(count, [&](int64_t row) {
    plain[static_cast<size_t>(row)] = log_probability(logits.rows(row, row + 1), followed[row]);
  });
  const auto cached = cache.score(states.value(), followed, rules);
  for (size_t r = 0; r < rules.size(); ++r)
    for (size_t i = 0; i < plain.size(); ++i)
      sums.of_rule[r] -= math::log((1 - rules[r].weight) * math::exp(plain[i]) + rules[r].weight * cached[r][i]);
}

double plain_loss(const Model& model, const Batch& text) {
  const TapePause pause;
  return static_cast<double>(model.loss(text, Context{Segments(text.segment_ids)}).sum.value().item());
}

/// Scores the texts of a split in their order, each row of its batches in turn, with a model that learns from each of
/// them once it is scored. Throws Error when there are no targets.
LossSums evaluate_copy(const SavedRun& run, const DataSource& data, Split split, const AdaptOptions& options,
                       const std::vector<CacheRule>& rules) {
  const bool learns = options.rate > 0;
  const std::shared_ptr<RunModel> copy =
      learns ? open_run(std::filesystem::path(run.weights).parent_path(), ParamMemory::allocated).model : run.model;
  const Model& model = copy->model();
  std::optional<DynamicEvaluation> dynamic;
  if (learns) dynamic.emplace(model, copy->params(), data.training(), options, log_info);
  std::optional<ContinuousCache> cache;
  if (options.cache > 0) cache.emplace(options.cache, model.stack().config().width);
  LossSums sums{0, std::vector<double>(cache ? rules.size() : 1)};
  const std::unique_ptr<BatchSource> texts = data.evaluation(split);
  RowsInOrder rows(*texts);
  Progress progress(log_info, "evaluating", static_cast<double>(rows.size()), in_shares);
  for (int64_t i = 0; i < rows.size(); ++i) {
    const Batch text = rows.row(i);
    if (cache) add_cached(model, text, rules, *cache, sums);
    const double loss = dynamic ? dynamic->learn(text) : cache ? 0 : plain_loss(model, text);
    if (!cache) sums.of_rule.front() += loss;
    sums.targets += std::count_if(text.labels.data(), text.labels.data() + text.labels.size(),
                                  [](int32_t label) { return label != ignored_target; });
    progress.add(1);
  }
  if (sums.targets == 0) throw Error("evaluation: there are no targets");
  return sums;
}

/// Throws Error for a loss of more than a hundred nats per token, or one that is not finite: the weights have run away.
void check_rate(double rate, double loss_sum, int64_t targets) {
  constexpr double max_loss = 100;
  const double loss = loss_sum / static_cast<double>(targets);
  if (rate > 0 && !(loss <= max_loss))
    throw Error(
        fmt::format("--adapt: at a rate of {:g} the loss is {:.3g} nats per token: give a smaller one", rate, loss));
}

/// Tries the rules of a cache on the validation data and returns what the best gave there.
AdaptedFigures choose_rule(const SavedRun& run, const DataSource& data, const AdaptOptions& options,
                           const char* remark) {
  const std::vector<CacheRule> rules = rules_to_try();
  const LossSums tried = evaluate_copy(run, data, Split::valid, options, rules);
  const auto least = std::min_element(tried.of_rule.begin(), tried.of_rule.end());
  const CacheRule best = rules[static_cast<size_t>(least - tried.of_rule.begin())];
  check_rate(options.rate, *least, tried.targets);
  log_info(fmt::format("cache: sharpness {} and weight {}, chosen on the validation data{}", best.sharpness,
                       best.weight, remark));
  return {tried.targets, *least, best};
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
                                     const AdaptOptions& options, const LogLine& log)
    : task_(task),
      params_(params),
      options_(options),
      start_(params.values(), params.values() + params.dense_size()),
      squares_(start_.size(), 0),
      table_squares_(params.grad_block().tables().size(), 0),
      table_counts_(table_squares_.size(), 0) {
  const int64_t batches = training.batches_per_epoch(0), texts = std::min(max_statistics, batches);
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

AdaptedFigures evaluate_adapted(const SavedRun& run, const DataSource& data, Split split, const AdaptOptions& options) {
  check_options(run, data, split, options);
  AdaptedFigures figures;
  std::vector<CacheRule> rules;
  if (options.cache > 0) {
    const bool same = split == Split::valid;
    figures = choose_rule(run, data, options, same ? ", which are those evaluated: the figure flatters" : "");
    if (same) return figures;
    rules = {*figures.rule};
  }
  const Stopwatch watch;
  const LossSums result = evaluate_copy(run, data, split, options, rules);
  figures.targets = result.targets;
  figures.loss_sum = result.of_rule.front();
  check_rate(options.rate, figures.loss_sum, figures.targets);
  figures.seconds = watch.seconds();
  return figures;
}

}  // namespace capstan
