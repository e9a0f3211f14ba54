// In turn: epochs over the learnt rows, the temperature that suits the held-out rows, and the figures at it. Weights
// and position are saved together. tests/train/linear/test_fit_adagrad.cpp.
#include "train/linear/fit_adagrad.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "core/base/stop.hpp"
#include "core/machine/parallel.hpp"
#include "train/linear/adagrad.hpp"
#include "train/linear/calibration.hpp"
#include "train/linear/work_file.hpp"

namespace capstan {
namespace {

/// The third gains little, so there is no fourth (docs/notes/ngrams.md).
constexpr int adagrad_epochs = 3;
constexpr int64_t held_out_share = 10, max_held_out = 20'000;  // texts that are held out: one in 10

/// The rows that AdaGrad learns from, and the rows that are held out.
struct Parts {
  std::vector<uint32_t> learnt, held_out;
};

/// One row of so many is held out: 10, or more where a tenth would be above max_held_out.
int64_t folds_held_out(const NgramRows& rows) { return std::max(held_out_share, rows.rows() / max_held_out); }

Parts parts_of(const NgramRows& rows) {
  check(rows.rows() <= std::numeric_limits<uint32_t>::max(), "AdaGrad: {} rows are too many", rows.rows());
  Parts parts;
  parts.learnt.reserve(static_cast<size_t>(rows.rows()));
  const std::vector<int32_t> folds = folds_of_rows(rows, folds_held_out(rows));
  for (int64_t row = 0; row < rows.rows(); ++row)
    (folds[static_cast<size_t>(row)] == 0 ? parts.held_out : parts.learnt).push_back(static_cast<uint32_t>(row));
  if (parts.learnt.empty()) std::swap(parts.learnt, parts.held_out);
  return parts;
}

/// How far the epochs are, as a file of unfinished work has it: the next row.
struct Position {
  int64_t epoch = 0, row = 0;
};

/// Epochs over some rows, in a new order each, with a rate that falls to 0.
class Epochs {
 public:
  Epochs(const NgramRows& rows, uint64_t seed, AdaGrad& solver)
      : rows_(rows),
        solver_(solver),
        key_(random_key(seed, "order of rows")),
        bias_(log_priors(rows)),
        file_(rows.work(), "adagrad", fmt::format("{} {} {}", seed, rows.config().buckets, rows.rows())) {}

  void run(const std::vector<uint32_t>& learnt, Progress* progress) {
    const auto count = static_cast<int64_t>(learnt.size());
    Position at = saved();
    if (progress != nullptr) progress->skip(static_cast<double>(at.epoch * count + at.row));
    for (; at.epoch < adagrad_epochs; ++at.epoch, at.row = 0)
      for (; at.row < count; at.row += adagrad_batch) {
        stop_point();
        if (file_.due()) save(at);
        const int64_t batch = std::min(adagrad_batch, count - at.row);
        const double done =
            static_cast<double>(at.epoch * count + at.row) / static_cast<double>(adagrad_epochs * count);
        const double rate = solver_.first_rate() * (1 - done);
        solver_.learn(batch, static_cast<float>(rate), bias_, [&](int64_t i, RowScratch& scratch, AdaGradExample& to) {
          const int64_t row = learnt[static_cast<size_t>(permuted_place(at.row + i, count, key_, at.epoch))];
          rows_.read_row(row, scratch, to.values);
          to.labels = rows_.labels(row);
          to.weight = rows_.weight(row);
        });
        if (progress != nullptr) progress->add(static_cast<double>(batch));
      }
  }

 private:
  /// Calls visit(bucket) for buckets that are in use.
  template <class Visit>
  void for_used(const Visit& visit) const {
    for (int64_t f = 0; f < rows_.config().buckets; ++f)
      if (rows_.scale()[static_cast<size_t>(f)] != 0) visit(f);
  }
  void save(const Position& at) {
    file_.save([&](FileWriter& to) {
      to.write(&at, sizeof(at));
      for_used([&](int64_t f) {
        to.write(solver_.row(f), static_cast<size_t>(solver_.width()) * sizeof(float));
        to.write(solver_.accumulators() + f, sizeof(float));
      });
    });
  }
  /// Where the epochs go on, with the weights there: what the file has, or the beginning.
  Position saved() {
    Position at;
    auto from = file_.load();
    if (!from || !from->read(&at, sizeof(at)) || at.epoch < 0 || at.epoch > adagrad_epochs || at.row < 0) return {};
    bool whole = true;
    for_used([&](int64_t f) {
      whole = whole && from->read(solver_.row(f), static_cast<size_t>(solver_.width()) * sizeof(float)) &&
              from->read(solver_.accumulators() + f, sizeof(float));
    });
    if (whole) return at;
    for_used([&](int64_t f) {
      std::fill_n(solver_.row(f), solver_.width(), 0.0F);
      solver_.accumulators()[f] = 0;
    });
    return {};
  }

  const NgramRows& rows_;
  AdaGrad& solver_;
  RandomKey key_;
  std::vector<double> bias_;
  WorkFile file_;
};

/// The scores of the rows that are held out, and their figures at a temperature.
class HeldOutScores {
 public:
  HeldOutScores(const NgramRows& rows, const AdaGrad& solver, const std::vector<uint32_t>& held_out)
      : rows_(rows), solver_(solver), held_out_(held_out), bias_(log_priors(rows)) {
    const int64_t columns = solver.columns();
    scores_.resize(held_out.size() * static_cast<size_t>(columns));
    parallel_for(static_cast<int64_t>(held_out.size()), 8, [&](int64_t begin, int64_t end) {
      RowScratch scratch;
      RowValues values;
      std::vector<float> row_scores(static_cast<size_t>(solver.width()));
      for (int64_t i = begin; i < end; ++i) {
        stop_point();
        rows.read_row(held_out[static_cast<size_t>(i)], scratch, values);
        std::fill(row_scores.begin(), row_scores.end(), 0.0F);
        solver.add_scores(values.all, row_scores.data());
        std::copy_n(row_scores.begin(), columns, scores_.begin() + i * columns);
      }
    });
  }

  Temperature best() const {
    return fit_temperature(static_cast<int64_t>(held_out_.size()), [&](double inverse) { return statistics(inverse); });
  }
  LinearFit fit(double inverse_temperature) const { return fit_of(rows_, rows_at(inverse_temperature)); }

 private:
  /// On all threads: with thousands of classes, this takes as long as the epochs.
  LogitStatistics statistics(double inverse_temperature) const {
    constexpr size_t rows_per_part = 64;
    std::vector<LogitStatistics> parts((held_out_.size() + rows_per_part - 1) / rows_per_part);
    parallel_units(static_cast<int64_t>(parts.size()), [&](int64_t part) {
      const size_t first = static_cast<size_t>(part) * rows_per_part;
      for (size_t i = first; i < std::min(first + rows_per_part, held_out_.size()); ++i)
        parts[static_cast<size_t>(part)].add(logits_of(i, inverse_temperature), rows_.labels(held_out_[i]),
                                             rows_.multi_label(), rows_.relative_weight(held_out_[i]));
    });
    LogitStatistics total;
    for (const LogitStatistics& part : parts) {
      total.of_rows.add(part.of_rows);
      total.margins += part.margins;
    }
    return total;
  }
  std::vector<double> logits_of(size_t i, double inverse_temperature) const {
    return solver_.logits(scores_.data() + i * static_cast<size_t>(solver_.columns()), inverse_temperature, bias_);
  }
  VisitRows rows_at(double inverse_temperature) const {
    return [this, inverse_temperature](const RowVisit& take) {
      for (size_t i = 0; i < held_out_.size(); ++i) {
        stop_point();
        take(logits_of(i, inverse_temperature), rows_.labels(held_out_[i]), rows_.relative_weight(held_out_[i]));
      }
    };
  }

  const NgramRows& rows_;
  const AdaGrad& solver_;
  const std::vector<uint32_t>& held_out_;
  std::vector<double> bias_;
  std::vector<float> scores_;
};

/// The share of words among the n-grams of a batch.
double share_of_words(const std::vector<AdaGradExample>& batch) {
  double words = 0, all = 1e-9;
  for (const AdaGradExample& example : batch) {
    words += static_cast<double>(example.values.words);
    all += static_cast<double>(example.values.all.size());
  }
  return words / all;
}

/// Lines for the log. `texts`: how many are held out.
std::vector<std::string> report_of(const NgramRows& rows, const AdaGrad& solver, const LinearFit& fit,
                                   double inverse_temperature, size_t texts) {
  const double accuracy = fit.held_out.accuracy(), count = std::max(static_cast<double>(texts), 1.0);
  std::vector<std::string> lines{
      rows.report(),
      fmt::format("linear: too many texts or n-grams to solve for: {} epochs of AdaGrad over rows that are {}",
                  adagrad_epochs, rows.kept() ? "kept in memory" : "made again in each epoch"),
      fmt::format("linear: {} texts held out: {}; logits x {:.2f}", texts,
                  fit.labels ? fmt::format("micro-F1 {:.2f} %", 100 * fit.labels->all.f1())
                             : fmt::format("accuracy {:.2f} % (standard error {:.2f})", 100 * accuracy,
                                           100 * std::sqrt(accuracy * (1 - accuracy) / count)),
                  inverse_temperature)};
  if (const NgramOrders orders = orders_of(rows.config()); !orders.words.empty() && !orders.characters.empty())
    lines.push_back(
        fmt::format("linear: model.characters=[] would take about {:.0f} % of the time, and is less accurate "
                    "where parts of words tell classes apart",
                    100 * share_of_words(solver.batch())));
  return lines;
}

}  // namespace

double adagrad_work(const NgramRows& rows) {
  return adagrad_epochs * static_cast<double>(rows.rows() - rows.rows() / folds_held_out(rows));
}

LinearFit fit_by_adagrad(const NgramRows& rows, ParamStore& params, uint64_t seed, Progress* progress) {
  const Parts parts = parts_of(rows);
  AdaGrad solver({rows.config().buckets, rows.classes(), rows.multi_label(), !orders_of(rows.config()).words.empty()},
                 rows.class_weights());
  if (progress != nullptr) progress->begin("epochs over all texts");
  Epochs(rows, seed, solver).run(parts.learnt, progress);
  const HeldOutScores held_out(rows, solver, parts.held_out);
  const double inverse_temperature = held_out.best().inverse;
  LinearFit fit = held_out.fit(inverse_temperature);
  fit.report = report_of(rows, solver, fit, inverse_temperature, parts.held_out.size());

  const auto values_of = [&](const char* name) { return params.values() + params.find(name).offset; };
  const std::vector<double> priors = log_priors(rows);
  std::copy(rows.scale().begin(), rows.scale().end(), values_of("linear.scale"));
  std::copy(priors.begin(), priors.end(), values_of("linear.bias"));
  if (fit.labels)
    std::copy(fit.labels->thresholds.begin(), fit.labels->thresholds.end(), values_of("linear.threshold"));
  solver.write_weights(inverse_temperature, values_of("linear.weight"));
  return fit;
}

}  // namespace capstan
