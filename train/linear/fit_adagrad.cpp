// In turn: epochs over the learnt rows, the temperature that suits the held-out rows, and the figures at it. Weights
// and position are saved together. tests/train/linear/test_linear.cpp.
#include "train/linear/fit_adagrad.hpp"

#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "core/base/stop.hpp"
#include "core/io/tensor_rows.hpp"
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

/// Saves the weights after they have learnt from `done` rows, in all epochs together.
void save(WorkFile& file, const NgramRows& rows, const AdaGrad& solver, int64_t done) {
  const int64_t buckets = rows.config().buckets;
  const auto used = rows_to_store(buckets, [&](int64_t f) { return rows.scale()[static_cast<size_t>(f)] != 0; });
  file.save({{"weights", DType::f32, {buckets, solver.width()}, solver.row(0), used},
             {"accumulators", DType::f32, {buckets}, solver.accumulators(), used},
             {"done", DType::i64, {1}, &done}});
}

/// Takes the weights of the file. Returns `done` of save(); 0 where the epochs begin.
int64_t load(const WorkFile& file, AdaGrad& solver) {
  const auto saved = file.load();
  if (!saved) return 0;
  for_rows<float>(saved->at("weights"),
                  [&](int64_t f, const float* row) { std::copy_n(row, solver.width(), solver.row(f)); });
  for_rows<float>(saved->at("accumulators"), [&](int64_t f, const float* sum) { solver.accumulators()[f] = *sum; });
  return static_cast<int64_t>(saved->at("done").to_doubles().at(0));
}

/// Epochs over some rows, in a new order each, with a rate that falls to 0.
void learn_in_epochs(const NgramRows& rows, const std::vector<uint32_t>& learnt, uint64_t seed, AdaGrad& solver,
                     Progress* progress) {
  const auto count = static_cast<int64_t>(learnt.size());
  const RandomKey key = random_key(seed, "order of rows");
  const std::vector<double> bias = log_priors(rows);
  WorkFile file(rows.work(), "adagrad");
  int64_t done = load(file, solver);
  if (progress != nullptr) progress->skip(static_cast<double>(done));
  while (done < adagrad_epochs * count) {
    stop_point();
    if (file.due()) save(file, rows, solver, done);
    const int64_t epoch = done / count, first = done % count, batch = std::min(adagrad_batch, count - first);
    const double left = 1 - static_cast<double>(done) / static_cast<double>(adagrad_epochs * count);
    solver.learn(batch, static_cast<float>(solver.first_rate() * left), bias,
                 [&](int64_t i, RowScratch& scratch, AdaGradExample& to) {
                   const int64_t row = learnt[static_cast<size_t>(permuted_place(first + i, count, key, epoch))];
                   rows.read_row(row, scratch, to.values);
                   to.labels = rows.labels(row);
                   to.weight = rows.weight(row);
                 });
    if (progress != nullptr) progress->add(static_cast<double>(batch));
    done += batch;
  }
}

/// statistics_of() on all threads: with thousands of classes, this takes as long as the epochs.
template <class LogitsOf>
LogitStatistics statistics_in_parts(const NgramRows& rows, const std::vector<uint32_t>& held_out,
                                    const LogitsOf& logits_of) {
  constexpr size_t rows_per_part = 64;
  std::vector<LogitStatistics> parts((held_out.size() + rows_per_part - 1) / rows_per_part);
  parallel_units(static_cast<int64_t>(parts.size()), [&](int64_t part) {
    const size_t first = static_cast<size_t>(part) * rows_per_part;
    for (size_t i = first; i < std::min(first + rows_per_part, held_out.size()); ++i)
      parts[static_cast<size_t>(part)].add(logits_of(i), rows.labels(held_out[i]), rows.multi_label(),
                                           rows.relative_weight(held_out[i]));
  });
  LogitStatistics total;
  for (const LogitStatistics& part : parts) {
    total.of_rows.add(part.of_rows);
    total.margins += part.margins;
  }
  return total;
}

/// The share of words among the n-grams of a batch.
double share_of_words(const std::vector<AdaGradExample>& batch) {
  double words = 0, all = 1e-9;
  for (const AdaGradExample& example : batch) {
    words += static_cast<double>(example.values.words);
    all += static_cast<double>(example.values.all.size());
  }
  return words / all;
}

/// Lines for the log.
std::vector<std::string> report_of(const NgramRows& rows, const AdaGrad& solver, const LinearFit& fit,
                                   double inverse_temperature) {
  std::vector<std::string> lines{
      fmt::format("linear: too many texts or n-grams to solve for: {} epochs of AdaGrad over rows that are {}",
                  adagrad_epochs, rows.kept() ? "kept in memory" : "made again in each epoch"),
      fmt::format("linear: {} texts held out: {}; logits x {:.2f}", fit.held_out.targets, figures_of(fit),
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
  const std::vector<uint32_t>& held_out = parts.held_out;
  AdaGrad solver(rows.config(), rows.classes(), rows.multi_label(), rows.class_weights());
  if (progress != nullptr) progress->begin("epochs over all texts");
  learn_in_epochs(rows, parts.learnt, seed, solver, progress);
  const std::vector<double> priors = log_priors(rows);
  const auto held_out_count = static_cast<int64_t>(held_out.size());
  const std::vector<float> scores =
      solver.scores(held_out_count, [&](int64_t i, RowScratch& scratch, RowValues& values) {
        rows.read_row(held_out[static_cast<size_t>(i)], scratch, values);
      });
  const auto logits_of = [&](size_t i, double inverse) {
    return solver.logits(scores.data() + i * static_cast<size_t>(solver.columns()), inverse, priors);
  };
  const auto statistics = [&](double inverse) {
    return statistics_in_parts(rows, held_out, [&](size_t i) { return logits_of(i, inverse); });
  };
  const double inverse_temperature = fit_temperature(held_out_count, statistics).inverse;
  LinearFit fit = fit_of(rows, [&](const RowVisit& take) {
    for (size_t i = 0; i < held_out.size(); ++i) {
      stop_point();
      take(logits_of(i, inverse_temperature), rows.labels(held_out[i]), rows.relative_weight(held_out[i]));
    }
  });
  fit.report = report_of(rows, solver, fit, inverse_temperature);

  const auto values_of = [&](const char* name) { return params.values() + params.find(name).offset; };
  std::copy(priors.begin(), priors.end(), values_of("linear.bias"));
  solver.write_weights(inverse_temperature, values_of("linear.weight"));
  return fit;
}

}  // namespace capstan
