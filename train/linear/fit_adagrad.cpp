// In turn: epochs over a sample, with two classes only; the temperature that suits the held-out rows; epochs over all
// learnt rows; the temperature again, and the figures at it. Weights and position (AdaGradPosition) are saved together.
// tests/train/linear/test_fit_adagrad.cpp.
#include "train/linear/fit_adagrad.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "core/base/error.hpp"
#include "core/base/stop.hpp"
#include "train/linear/adagrad.hpp"
#include "train/linear/calibration.hpp"
#include "train/linear/work_file.hpp"

namespace capstan {
namespace {

/// Rates of AdaGrad, chosen by the loss of 20,000 training texts that were held back (docs/notes/ngrams.md).
constexpr double softmax_rate = 1, hinge_rate = 0.15;
constexpr int64_t sample_share = 8, max_sampled = 100'000;  // texts that tell the temperature of two classes: one in 8
constexpr int64_t held_out_share = 10, max_held_out = 20'000;  // texts that are held out: one in 10

/// The rows that AdaGrad learns from, and the rows that are held out. `sample`: some of the learnt rows, by which the
/// temperature of two classes is found; empty with more classes.
struct Parts {
  std::vector<uint32_t> learnt, sample, held_out;
};

/// One row of so many is held out: 10, or more where a tenth would be above max_held_out.
int64_t folds_held_out(const NgramRows& rows) { return std::max(held_out_share, rows.rows() / max_held_out); }
int64_t sample_size(int64_t learnt) { return std::max<int64_t>(1, std::min(learnt / sample_share, max_sampled)); }

Parts parts_of(const NgramRows& rows) {
  check(rows.rows() <= std::numeric_limits<uint32_t>::max(), "AdaGrad: {} rows are too many", rows.rows());
  Parts parts;
  parts.learnt.reserve(static_cast<size_t>(rows.rows()));
  RowFolds fold(rows, folds_held_out(rows));
  for (int64_t row = 0; row < rows.rows(); ++row)
    (fold.next(row) == 0 ? parts.held_out : parts.learnt).push_back(static_cast<uint32_t>(row));
  if (parts.learnt.empty()) std::swap(parts.learnt, parts.held_out);
  if (!rows.is_binary()) return parts;
  const auto learnt = static_cast<int64_t>(parts.learnt.size()), count = sample_size(learnt);
  for (int64_t i = 0; i < count; ++i) parts.sample.push_back(parts.learnt[static_cast<size_t>(i * learnt / count)]);
  return parts;
}

/// The scores of the rows that are held out, and their figures at a temperature.
class HeldOutScores {
 public:
  HeldOutScores(const NgramRows& rows, const AdaGradSolver& solver, const std::vector<uint32_t>& held_out)
      : rows_(rows), solver_(solver), held_out_(held_out), scores_(solver.scores(held_out)) {}

  Temperature best() const {
    return fit_temperature(static_cast<int64_t>(held_out_.size()), [&](double inverse_temperature) {
      return statistics_of(rows_, rows_at(inverse_temperature));
    });
  }
  LinearFit fit(double inverse_temperature) const { return fit_of(rows_, rows_at(inverse_temperature)); }

 private:
  VisitRows rows_at(double inverse_temperature) const {
    return [this, inverse_temperature](const RowVisit& take) {
      const size_t columns = scores_.size() / std::max<size_t>(held_out_.size(), 1);
      for (size_t i = 0; i < held_out_.size(); ++i) {
        stop_point();
        take(solver_.logits(scores_.data() + i * columns, inverse_temperature), rows_.labels(held_out_[i]),
             rows_.relative_weight(held_out_[i]));
      }
    };
  }

  const NgramRows& rows_;
  const AdaGradSolver& solver_;
  const std::vector<uint32_t>& held_out_;
  std::vector<float> scores_;
};

/// Where AdaGrad goes on, with the weights there: what the file has, or the beginning.
AdaGradPosition saved_position(const WorkFile& file, AdaGradSolver& solver) {
  AdaGradPosition position;
  auto saved = file.load();
  const bool known = saved && saved->read(&position, sizeof(position)) && position.is_possible() && solver.read(*saved);
  return known ? position : AdaGradPosition();
}

/// Lines for the log. `texts`: how many are held out.
std::vector<std::string> report_of(const NgramRows& rows, const AdaGradSolver& solver, const LinearFit& fit,
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
                    100 * solver.share_of_words()));
  return lines;
}

}  // namespace

double adagrad_work(const NgramRows& rows) {
  const int64_t learnt = rows.rows() - rows.rows() / folds_held_out(rows);
  return adagrad_epochs * static_cast<double>(learnt + (rows.is_binary() ? sample_size(learnt) : 0));
}

LinearFit fit_by_adagrad(const NgramRows& rows, ParamStore& params, uint64_t seed, Progress* progress) {
  const Parts parts = parts_of(rows);
  const auto work_of = [](const std::vector<uint32_t>& some_rows) {
    return adagrad_epochs * static_cast<double>(some_rows.size());
  };
  AdaGradSolver solver(rows, seed);
  const double rate = rows.is_binary() ? hinge_rate : softmax_rate;
  WorkFile file(rows.work(), "adagrad", fmt::format("{} {} {}", seed, rows.config().buckets, rows.rows()));
  AdaGradPosition position = saved_position(file, solver);
  const auto save = [&] {
    if (!file.due()) return;
    file.save([&](FileWriter& to) {
      to.write(&position, sizeof(position));
      solver.write(to);
    });
  };
  if (position.of_sample == 1 && !parts.sample.empty()) {
    if (progress != nullptr) progress->begin("epochs over a sample");
    solver.run(parts.sample, rate, position, work_of(parts.sample), progress, save);
    position.inverse_temperature = HeldOutScores(rows, solver, parts.held_out).best().inverse;
  } else if (progress != nullptr) {
    progress->skip(work_of(parts.sample));
  }
  if (position.of_sample == 1) position = {0, 0, 0, position.inverse_temperature};
  if (progress != nullptr) progress->begin("epochs over all texts");
  solver.run(parts.learnt, rate, position, work_of(parts.learnt), progress, save);
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
  solver.take(inverse_temperature, values_of("linear.weight"));
  return fit;
}

}  // namespace capstan
