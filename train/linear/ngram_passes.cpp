#include "train/linear/ngram_passes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/core.h>

#include "core/base/random.hpp"
#include "core/base/stop.hpp"
#include "core/machine/parallel.hpp"
#include "train/linear/calibration.hpp"

namespace capstan {
namespace {

constexpr int passes = 3;
/// Chosen by the loss of 20,000 training texts that were held back (docs/notes/ngrams.md).
constexpr double softmax_rate = 1, hinge_rate = 0.15;
/// N-grams of characters, of which a text has many more than of words, learn more slowly.
constexpr float characters_share = 0.5F;
constexpr int64_t sample_share = 8, most_sampled = 100'000;     // texts that tell the factor of two classes: one in 8
constexpr int64_t held_out_share = 10, most_held_out = 20'000;  // texts that are held out: one in 10
/// Rows whose gradients are computed with the same weights, on all threads.
constexpr int64_t rows_at_once = 256, rows_per_thread = 16;
constexpr int64_t lane = 8;        // weights of a bucket are a multiple, for vector instructions
constexpr size_t rows_ahead = 8;   // of the table, that are fetched
constexpr float first_square = 1;  // where the sums of AdaGrad begin

enum class Loss { softmax, hinge, logistic };

/// out[k] += x W, with `blocks` * lane weights for each bucket.
template <int blocks>
void add_scores(const std::vector<NgramValue>& row, const float* weights, float* out) {
  constexpr int64_t width = blocks * lane;
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

/// W[bucket] -= rate x slopes / sqrt(sum of squares) for a part of a row.
template <int blocks>
void step_back(const NgramValue* begin, const NgramValue* end, const float* slopes, float squares, float rate,
               float* weights, float* sums) {
  constexpr int64_t width = blocks * lane;
  float fixed[width];
  std::copy_n(slopes, width, fixed);
  for (const NgramValue* entry = begin; entry != end; ++entry) {
    if (entry + rows_ahead < end) {
      const uint32_t next = entry[rows_ahead].bucket;
      for (int64_t k = 0; k < width; k += 16) __builtin_prefetch(weights + next * width + k, 1);
      __builtin_prefetch(sums + next, 1);
    }
    float& sum = sums[entry->bucket];
    sum += squares * entry->value * entry->value;
    const float step = rate * entry->value / std::sqrt(sum);
    float* const to = weights + entry->bucket * width;
    for (int64_t k = 0; k < width; ++k) to[k] -= step * fixed[k];
  }
}

class PassSolver {
 public:
  PassSolver(const NgramRows& rows, uint64_t seed)
      : rows_(rows),
        seed_(seed),
        loss_(rows.multi_label() ? Loss::logistic
              : rows.is_binary() ? Loss::hinge
                                 : Loss::softmax),
        columns_(rows.is_binary() ? 1 : rows.classes()),
        width_(columns_ == 1 ? 1 : (columns_ + lane - 1) / lane * lane),
        characters_share_(rows.config().words.empty() ? 1 : characters_share) {
    const std::vector<double> shares = logits_of_shares(rows);
    shares_ = columns_ == 1 ? std::vector<double>{shares[1]} : shares;
    shifts_ = shifts_of(rows.class_weights());
    if (columns_ == 1 && !shifts_.empty()) shifts_ = {(shifts_[1] - shifts_[0]) / 2};
  }

  /// From weights of zero. Of two classes, the logits are supposed to be `factor` times the scores.
  void run(const std::vector<int64_t>& learnt, double rate, double factor, double work, Progress* progress) {
    weights_.assign(static_cast<size_t>(rows_.config().buckets * width_), 0);
    sums_.assign(static_cast<size_t>(rows_.config().buckets), first_square);
    factor_ = loss_ == Loss::hinge ? factor : 1;
    std::vector<int64_t> order = learnt;
    RandomStream random(random_key(seed_, "order of rows"));
    const auto count = static_cast<int64_t>(order.size());
    batch_.resize(static_cast<size_t>(rows_at_once));
    scratches_.resize(static_cast<size_t>(team_size()));
    for (int pass = 0; pass < passes; ++pass) {
      for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
      for (int64_t first = 0; first < count; first += rows_at_once) {
        stop_point();
        const int64_t now = std::min(rows_at_once, count - first);
        const double done = static_cast<double>(pass * count + first) / static_cast<double>(passes * count);
        learn(order.data() + first, now, static_cast<float>(rate * (1 - done)));
        if (progress != nullptr) progress->add(work * static_cast<double>(now) / static_cast<double>(passes * count));
      }
    }
  }

  /// x W of some rows, (rows, columns).
  std::vector<float> scores(const std::vector<int64_t>& of) const {
    std::vector<float> all(of.size() * static_cast<size_t>(columns_));
    parallel_for(static_cast<int64_t>(of.size()), rows_per_thread, [&](int64_t begin, int64_t end) {
      RowScratch scratch;
      RowValues values;
      std::vector<float> found(static_cast<size_t>(width_));
      for (int64_t i = begin; i < end; ++i) {
        stop_point();
        rows_.read_row(of[static_cast<size_t>(i)], scratch, values);
        std::fill(found.begin(), found.end(), 0.0F);
        score(values.all, found.data());
        std::copy_n(found.begin(), columns_, all.begin() + i * columns_);
      }
    });
    return all;
  }

  /// Of scores x W.
  std::vector<double> logits(const float* scores, double factor) const {
    std::vector<double> found(static_cast<size_t>(rows_.classes()));
    for (int64_t c = 0; c < columns_; ++c)
      found[static_cast<size_t>(columns_ == 1 ? 1 : c)] =
          factor * static_cast<double>(scores[c]) + shares_[static_cast<size_t>(c)];
    if (columns_ == 1) found[0] = -found[1];
    return found;
  }

  /// Moves the weights to the parameters: (buckets, classes).
  void take(double factor, real* weight) {
    const int64_t classes = rows_.classes();
    for (int64_t f = 0; f < rows_.config().buckets; ++f)
      for (int64_t c = 0; c < columns_; ++c) {
        const double value = factor * static_cast<double>(weights_[static_cast<size_t>(f * width_ + c)]);
        weight[f * classes + (columns_ == 1 ? 1 : c)] = static_cast<real>(value);
        if (columns_ == 1) weight[f * classes] = static_cast<real>(0 - value);  // not -0.0, which would be written
      }
    weights_ = {};
  }

 private:
  struct Row {
    RowValues values;
    std::vector<float> slopes;  // of the loss, by score
    float squares = 0;          // of these
  };

  void learn(const int64_t* of, int64_t count, float rate) {
    parallel_for(count, rows_per_thread, [&](int64_t begin, int64_t end) {
      RowScratch& scratch = scratches_[static_cast<size_t>(thread_index())];
      for (int64_t i = begin; i < end; ++i) {
        Row& row = batch_[static_cast<size_t>(i)];
        rows_.read_row(of[i], scratch, row.values);
        row.slopes.assign(static_cast<size_t>(width_), 0);
        score(row.values.all, row.slopes.data());
        scores_to_slopes(of[i], row);
      }
    });
    // Each thread updates buckets of its own, in the order of the rows.
    const int64_t buckets = rows_.config().buckets;
    parallel_for(buckets, buckets / std::max(threads(), 1), [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < count; ++i) {
        const Row& row = batch_[static_cast<size_t>(i)];
        if (row.squares == 0) continue;
        const NgramValue *const all = row.values.all.data(), *const characters = all + row.values.words;
        update(part_of(all, characters, begin, end), row, 1, rate);
        update(part_of(characters, all + row.values.all.size(), begin, end), row, characters_share_, rate);
      }
    });
  }

  using Part = std::pair<const NgramValue*, const NgramValue*>;
  /// The entries of a block, which are in the order of their buckets, with buckets from `begin` to `end`.
  Part part_of(const NgramValue* first, const NgramValue* last, int64_t begin, int64_t end) const {
    const auto before = [](const NgramValue& entry, int64_t bucket) { return entry.bucket < bucket; };
    if (begin > 0) first = std::lower_bound(first, last, begin, before);
    if (end < rows_.config().buckets) last = std::lower_bound(first, last, end, before);
    return {first, last};
  }

  void score(const std::vector<NgramValue>& row, float* out) const {
    const float* const weights = weights_.data();
    switch (width_ / lane) {
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
        for (const NgramValue& entry : row)
          for (int64_t k = 0; k < width_; ++k) out[k] += entry.value * weights[entry.bucket * width_ + k];
    }
  }

  /// As if the entries were multiplied by the root of `share`, and so were the weights at the end.
  void update(const Part& part, const Row& row, float share, float rate) {
    rate *= share;
    const float squares = row.squares * share;
    float* const weights = weights_.data();
    const float* const slopes = row.slopes.data();
    const auto& [begin, end] = part;
    switch (width_ / lane) {
      case 1:
        return step_back<1>(begin, end, slopes, squares, rate, weights, sums_.data());
      case 2:
        return step_back<2>(begin, end, slopes, squares, rate, weights, sums_.data());
      case 3:
        return step_back<3>(begin, end, slopes, squares, rate, weights, sums_.data());
      case 4:
        return step_back<4>(begin, end, slopes, squares, rate, weights, sums_.data());
      default:
        for (const NgramValue* entry = begin; entry != end; ++entry) {
          float& sum = sums_[entry->bucket];
          sum += squares * entry->value * entry->value;
          const float step = rate * entry->value / std::sqrt(sum);
          float* const to = weights + entry->bucket * width_;
          for (int64_t k = 0; k < width_; ++k) to[k] -= step * slopes[k];
        }
    }
  }

  /// Scores become the derivatives of the row's loss.
  void scores_to_slopes(int64_t of, Row& row) const {
    std::vector<float>& slopes = row.slopes;
    const LabelSet& labels = rows_.labels(of);
    for (int64_t c = 0; c < columns_; ++c)
      slopes[static_cast<size_t>(c)] += static_cast<float>(
          (shares_[static_cast<size_t>(c)] + (shifts_.empty() ? 0 : shifts_[static_cast<size_t>(c)])) / factor_);
    if (loss_ == Loss::hinge) {
      const float sign = labels.front() == 1 ? 1 : -1;
      slopes[0] = -2 * sign * std::max(0.0F, 1 - sign * slopes[0]);
    } else if (loss_ == Loss::softmax) {
      const float most = *std::max_element(slopes.begin(), slopes.begin() + columns_);
      float sum = 0;
      for (int64_t c = 0; c < columns_; ++c)
        sum += slopes[static_cast<size_t>(c)] = std::exp(slopes[static_cast<size_t>(c)] - most);
      for (int64_t c = 0; c < columns_; ++c) slopes[static_cast<size_t>(c)] /= sum;
    } else {
      for (int64_t c = 0; c < columns_; ++c)
        slopes[static_cast<size_t>(c)] = 1 / (1 + std::exp(-slopes[static_cast<size_t>(c)]));
    }
    if (loss_ != Loss::hinge)
      for (const int32_t label : labels) slopes[static_cast<size_t>(label)] -= 1;
    for (int64_t c = 0; c < columns_ && (rows_.weighs_classes() || rows_.weight(of) != 1); ++c)
      slopes[static_cast<size_t>(c)] *=
          static_cast<float>(rows_.weight(of, static_cast<int32_t>(columns_ == 1 ? 1 : c)));
    row.squares = 0;
    for (const float slope : slopes) row.squares += slope * slope;
  }

  const NgramRows& rows_;
  uint64_t seed_;
  Loss loss_;
  int64_t columns_, width_;
  float characters_share_;
  double factor_ = 1;
  std::vector<double> shares_;  // their logits, by column
  std::vector<double> shifts_;  // that weights of classes make; none without
  std::vector<float> weights_;  // (buckets, width)
  std::vector<float> sums_;     // of squares, by bucket
  std::vector<Row> batch_;
  std::vector<RowScratch> scratches_;  // by thread
};

/// Which rows the passes read, and which they do not. Of several classes, there is no sample.
struct Parts {
  std::vector<int64_t> learnt, sample, held_out;
};

Parts parts_of(const NgramRows& rows) {
  const int64_t folds = std::max(held_out_share, rows.rows() / most_held_out);
  const std::vector<int64_t> fold = folds_of(rows, folds);
  Parts parts;
  for (int64_t row = 0; row < rows.rows(); ++row)
    (fold[static_cast<size_t>(row)] == 0 ? parts.held_out : parts.learnt).push_back(row);
  if (parts.learnt.empty()) std::swap(parts.learnt, parts.held_out);
  if (!rows.is_binary()) return parts;
  const auto learnt = static_cast<int64_t>(parts.learnt.size());
  const int64_t count = std::max<int64_t>(1, std::min(learnt / sample_share, most_sampled));
  for (int64_t i = 0; i < count; ++i) parts.sample.push_back(parts.learnt[static_cast<size_t>(i * learnt / count)]);
  return parts;
}

/// The figures of the rows that are held out, at a factor.
class HeldOutScores {
 public:
  HeldOutScores(const NgramRows& rows, const PassSolver& solver, const std::vector<int64_t>& held_out)
      : rows_(rows), solver_(solver), held_out_(held_out), scores_(solver.scores(held_out)) {}

  BestFactor best() const {
    return best_factor(static_cast<int64_t>(held_out_.size()), [&](double factor) { return sums(factor); });
  }
  LogitSums sums(double factor) const {
    LogitSums all;
    for_rows(factor, [&](const LabelSet& labels, const std::vector<double>& logits, double weight) {
      all.add(logits, labels, rows_.multi_label(), weight);
    });
    return all;
  }
  LabelReport labels(double factor, const std::vector<double>& thresholds) const {
    LabelReport report(rows_.classes(), thresholds);
    for_rows(factor, [&](const LabelSet& labels, const std::vector<double>& logits, double) {
      report.add(probabilities_of(logits, true).data(), flags_of(labels, logits.size()).data());
    });
    return report;
  }
  HeldOutPredictions predictions(double factor) const {
    HeldOutPredictions all(rows_.classes());
    for_rows(factor, [&](const LabelSet& labels, const std::vector<double>& logits, double) {
      all.add(probabilities_of(logits, false).data(), labels.front());
    });
    return all;
  }

 private:
  template <class Visit>
  void for_rows(double factor, const Visit& visit) const {
    const size_t columns = scores_.size() / std::max<size_t>(held_out_.size(), 1);
    for (size_t i = 0; i < held_out_.size(); ++i) {
      stop_point();
      visit(rows_.labels(held_out_[i]), solver_.logits(scores_.data() + i * columns, factor),
            rows_.relative_weight(held_out_[i]));
    }
  }

  const NgramRows& rows_;
  const PassSolver& solver_;
  const std::vector<int64_t>& held_out_;
  std::vector<float> scores_;
};

}  // namespace

double passes_work(const NgramRows& rows) {
  const Parts parts = parts_of(rows);
  return passes * static_cast<double>(parts.learnt.size() + parts.sample.size());
}

LinearFit fit_by_passes(const NgramRows& rows, ParamStore& params, uint64_t seed, Progress* progress) {
  const Parts parts = parts_of(rows);
  const auto work_of = [](const std::vector<int64_t>& some) { return passes * static_cast<double>(some.size()); };
  PassSolver solver(rows, seed);
  const double rate = rows.is_binary() ? hinge_rate : softmax_rate;
  BestFactor best{1, 0};
  if (!parts.sample.empty()) {
    if (progress != nullptr) progress->begin("passes over a sample");
    solver.run(parts.sample, rate, best.factor, work_of(parts.sample), progress);
    best = HeldOutScores(rows, solver, parts.held_out).best();
  }
  if (progress != nullptr) progress->begin("passes over all texts");
  solver.run(parts.learnt, rate, best.factor, work_of(parts.learnt), progress);
  const HeldOutScores held_out(rows, solver, parts.held_out);
  best = held_out.best();

  const auto values_of = [&](const char* name) { return params.values() + params.find(name).offset; };
  const std::vector<double> shares = logits_of_shares(rows);
  std::copy(rows.scale().begin(), rows.scale().end(), values_of("linear.scale"));
  std::copy(shares.begin(), shares.end(), values_of("linear.bias"));
  LinearFit fit;
  fit.held_out = held_out.sums(best.factor).of_rows;
  if (rows.multi_label()) {
    const std::vector<double> thresholds = held_out.labels(best.factor, {}).best_thresholds();
    std::copy(thresholds.begin(), thresholds.end(), values_of("linear.threshold"));
    fit.labels = held_out.labels(best.factor, thresholds).at(usual_threshold);
    fit.held_out.correct = fit.labels->exact;
  } else {
    fit.predictions = held_out.predictions(best.factor);
  }
  const double accuracy = fit.held_out.accuracy(), texts = std::max(static_cast<double>(parts.held_out.size()), 1.0);
  fit.report = {
      rows.report(),
      fmt::format("linear: too many texts or n-grams to solve for: {} passes of AdaGrad over rows that are {}", passes,
                  rows.kept() ? "kept in memory" : "made again in each pass"),
      fmt::format("linear: {} texts held out: {}; logits x {:.2f}", parts.held_out.size(),
                  fit.labels ? fmt::format("micro-F1 {:.2f} %", 100 * fit.labels->all.f1())
                             : fmt::format("accuracy {:.2f} % (standard error {:.2f})", 100 * accuracy,
                                           100 * std::sqrt(accuracy * (1 - accuracy) / texts)),
                  best.factor)};
  solver.take(best.factor, values_of("linear.weight"));
  return fit;
}

}  // namespace capstan
