// Work is cut into units, a kind and a problem of a fold each, which threads share out and a file keeps
// (unit_work.hpp). Scores of held-out rows are kept, so that mixes and temperatures are tried without solving again.
// tests/train/linear/test_linear.cpp.
#include "train/linear/cross_validation.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/stop.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {
namespace {

/// One of the two kinds of features, TF-IDF or the same times log-count ratios, with a cost C.
struct SvmKind {
  bool ratios;  // features times their log-count ratios
  double cost;  // C of SvmProblem
};
constexpr SvmKind svm_kinds[] = {{false, 0.25}, {false, 1}, {true, 0.25}, {true, 1}};
constexpr int64_t svm_kind_count = 4;
/// Shares of TF-IDF and of ratios in the sum.
constexpr double shares[][2] = {{1, 0}, {1, 0.5}, {1, 1}, {0.5, 1}, {0, 1}};

/// Entries times problems, over all folds that are held out: larger data have fewer of these.
constexpr double max_work = 1.5e8;
constexpr int64_t max_scores = 30'000'000;  // scores of held-out rows that are kept: 120 MB

/// The work of trying all mixes on one logit of a held-out row, as a multiple of what solving for a class takes for an
/// entry. Measured on AG News and R8.
constexpr double logit_work = 50;

/// C of solve_intercept(), chosen by the cross entropy of held-out rows of CR and MPQA. With larger costs, texts of
/// rare n-grams have an intercept far above 1.
constexpr double intercept_cost = 0.02;

std::vector<SvmMix> all_mixes() {
  std::vector<SvmMix> mixes;
  for (const int64_t plain : {0, 1})
    for (const int64_t ratios : {2, 3})
      for (const auto& share : shares) mixes.push_back({plain, ratios, share[0], share[1]});
  return mixes;
}

/// Into how many folds the rows are divided.
int64_t folds_of(const NgramRows& rows) {
  return std::min(rows.config().folds, rows.rows() - static_cast<int64_t>(rows.copies().size()));
}

/// How many of the folds are held out in turn: of large data not all, to save time.
int64_t held_out_folds(const NgramRows& rows) {
  const double work = static_cast<double>(rows.entries() + rows.rows()) * static_cast<double>(problem_count(rows));
  return std::clamp(static_cast<int64_t>(max_work / work), int64_t{1}, folds_of(rows));
}

/// The work of solving for one class where a fold is held out, so that there are fewer rows.
double held_out_work(const NgramRows& rows) {
  const auto folds = static_cast<double>(folds_of(rows));
  return (folds - 1) / folds;
}

int64_t max_held_out_rows(const NgramRows& rows) {
  return std::max<int64_t>(100, max_scores / (problem_count(rows) * svm_kind_count) / held_out_folds(rows));
}

/// The work of trying all mixes: some twenty temperatures of each, with each held-out row.
double mixes_work(const NgramRows& rows) {
  const int64_t held_out = std::min(rows.rows() / folds_of(rows), max_held_out_rows(rows)) * held_out_folds(rows);
  return logit_work * static_cast<double>(held_out * rows.classes()) /
         static_cast<double>(std::max<int64_t>(rows.entries(), 1));
}

/// Scores of held-out rows. The bias of a solution is also its score of a text without known n-grams, where it means
/// nothing. So the logits of such a text are the log priors of the classes, and rows whose intercept
/// (solve_intercept) is between 0 and 1 have logits in between.
class HeldOut {
 public:
  HeldOut(const NgramRows& rows, uint64_t seed)
      : rows_(rows),
        seed_(seed),
        problems_(problem_count(rows)),
        width_(svm_kind_count * problems_ + 1),
        log_priors_(log_priors(rows)),
        folds_(folds_of_rows(rows, folds_of(rows))) {
    const auto max_rows = static_cast<size_t>(max_held_out_rows(rows));
    const int64_t used = held_out_folds(rows);
    for (int64_t fold = 0; fold < used; ++fold) {
      starts_.push_back(held_out_.size());
      for (int64_t row = 0; row < rows.rows() && held_out_.size() - starts_.back() < max_rows; ++row)
        if (folds_[static_cast<size_t>(row)] == fold) held_out_.push_back(row);
    }
    starts_.push_back(held_out_.size());
    unknown_.assign(static_cast<size_t>(used * width_), 0);
    scores_.assign(held_out_.size() * static_cast<size_t>(width_), 0);
  }

  /// Units of work are, for each fold that is held out, its kinds times problems, and then its intercept.
  void solve(Progress* progress) {
    const int64_t folds = held_out_folds(rows_);
    UnitWork units({rows_.work(), "folds"}, folds * width_,
                   {{"scores", {static_cast<int64_t>(held_out_.size()), width_}, scores_.data()},
                    {"unknown", {folds, width_}, unknown_.data()}});
    units.run(progress, held_out_work(rows_), [&](int64_t unit, const UnitWork::TellShare& tell) {
      return solve_unit(unit / width_, unit % width_, tell);
    });
  }

  SvmMix best(Progress* progress) const {
    std::vector<SvmMix> mixes = all_mixes();
    parallel_units(static_cast<int64_t>(mixes.size()), [&](int64_t i) {
      choose_temperature(mixes[static_cast<size_t>(i)]);
      if (progress != nullptr) progress->add(mixes_work(rows_) / static_cast<double>(mixes.size()));
    });
    return *std::min_element(mixes.begin(), mixes.end(),
                             [](const SvmMix& a, const SvmMix& b) { return a.loss < b.loss; });
  }

  /// All held-out rows, with the logits of a mix, which must outlive the function.
  VisitRows rows_of(const SvmMix& mix) const {
    return [this, &mix](const RowVisit& take) {
      for (size_t i = 0; i < held_out_.size(); ++i) {
        stop_point();
        take(logits_of(i, mix), rows_.labels(held_out_[i]), rows_.relative_weight(held_out_[i]));
      }
    };
  }

 private:
  UnitWork::FillIn solve_unit(int64_t fold, int64_t column, const UnitWork::TellShare& tell) {
    std::vector<int64_t> learnt;
    for (int64_t row = 0; row < rows_.rows(); ++row)
      if (folds_[static_cast<size_t>(row)] != fold) learnt.push_back(row);
    if (learnt.empty()) return {};
    const SvmSolution solved = column == width_ - 1 ? solve_intercept(rows_, std::move(learnt), seed_, tell)
                                                    : solve_kind(rows_, std::move(learnt), column % problems_,
                                                                 column / problems_, seed_, tell);
    const size_t first = starts_[static_cast<size_t>(fold)], last = starts_[static_cast<size_t>(fold) + 1];
    std::vector<float> scores;
    for (size_t i = first; i < last; ++i) {
      stop_point();
      scores.push_back(solved.score(rows_, held_out_[i]));
    }
    return [=, scores = std::move(scores), unknown = solved.score_of_unknown(rows_)] {
      for (size_t i = first; i < last; ++i)
        scores_[i * static_cast<size_t>(width_) + static_cast<size_t>(column)] = scores[i - first];
      unknown_[static_cast<size_t>(fold * width_ + column)] = unknown;
    };
  }

  void choose_temperature(SvmMix& mix) const {
    const auto count = static_cast<int64_t>(held_out_.size());
    const int rounds = rows_.weighs_classes() ? 3 : 1;
    for (int round = 0; round < rounds; ++round) {
      const auto [inverse, loss] = fit_temperature(count, [&](double tried) {
        mix.inverse_temperature = tried;
        return statistics_of(rows_, rows_of(mix));
      });
      mix.inverse_temperature = inverse;
      mix.loss = loss;
      if (!rows_.weighs_classes()) return;
      mix.corrections.clear();
      mix.corrections = prior_corrections(rows_, rows_of(mix));
      mix.loss = statistics_of(rows_, rows_of(mix)).of_rows.loss_sum;
    }
  }

  std::vector<double> logits_of(size_t held_out, const SvmMix& mix) const {
    std::vector<double> logits(static_cast<size_t>(rows_.classes()));
    const int64_t fold = folds_[static_cast<size_t>(held_out_[held_out])];
    const float* const scores = scores_.data() + static_cast<int64_t>(held_out) * width_;
    const float* const unknown = unknown_.data() + fold * width_;
    const double absence = 1 - static_cast<double>(scores[width_ - 1]);
    for (int64_t p = 0; p < problems_; ++p) {
      const auto column = static_cast<size_t>(positive_class(rows_, p));
      const auto mixed = [&](const float* kind_scores) {
        return mix.plain_share * static_cast<double>(kind_scores[mix.plain * problems_ + p]) +
               mix.ratios_share * static_cast<double>(kind_scores[mix.ratios * problems_ + p]);
      };
      logits[column] =
          mix.inverse_temperature * (mixed(scores) - absence * mixed(unknown)) + absence * log_priors_[column];
      if (!mix.corrections.empty()) logits[column] += (1 - absence) * mix.corrections[column];
    }
    if (rows_.is_binary()) logits[0] = -logits[1];
    return logits;
  }

  const NgramRows& rows_;
  uint64_t seed_;
  int64_t problems_, width_;        // width_: scores of a row, kinds times problems and the intercept
  std::vector<double> log_priors_;  // log_priors()
  std::vector<int32_t> folds_;      // by row
  std::vector<int64_t> held_out_;   // rows, by fold
  std::vector<size_t> starts_;      // by fold that is held out: its first place in held_out_; then the end
  std::vector<float> scores_;       // (held out, width_)
  std::vector<float> unknown_;      // (folds, width_): the score of a text without known n-grams
};

/// Lines for the log.
std::vector<std::string> report_of(const NgramRows& rows, const CrossValidated& found) {
  std::vector<std::string> lines;
  if (const BaseClassifier* const base = rows.base(); base != nullptr)
    lines.push_back(fmt::format(
        "linear: the classifier that it starts from has {} buckets of n-grams; its scores are features, too",
        std::count_if(base->scale.begin(), base->scale.end(), [](float scale) { return scale != 0; })));
  const SvmMix& mix = found.mix;
  lines.push_back(fmt::format(
      "linear: {} of {} folds held out{}: {}; weights {:g} x TF-IDF (C {:g}) + {:g} x log-count ratios (C {:g}), "
      "logits x {:.2f}",
      held_out_folds(rows), folds_of(rows),
      held_out_folds(rows) < folds_of(rows) ? " (fewer of many texts and classes, to save time)" : "",
      figures_of(found.fit), mix.plain_share, svm_kinds[mix.plain].cost, mix.ratios_share, svm_kinds[mix.ratios].cost,
      mix.inverse_temperature));
  return lines;
}

}  // namespace

SvmSolution solve_kind(const NgramRows& rows, std::vector<int64_t> learnt, int64_t problem, int64_t kind, uint64_t seed,
                       const UnitWork::TellShare& tell) {
  const auto [ratios, cost] = svm_kinds[kind];
  return solve_svm(
      rows, {std::move(learnt), positive_class(rows, problem), cost, ratios, random_key(seed, "order of rows")}, tell);
}

SvmSolution solve_intercept(const NgramRows& rows, std::vector<int64_t> learnt, uint64_t seed,
                            const UnitWork::TellShare& tell) {
  SvmProblem problem{std::move(learnt), 0, intercept_cost, false, random_key(seed, "order of rows")};
  problem.intercept = true;
  return solve_svm(rows, problem, tell);
}

CrossValidated cross_validate(const NgramRows& rows, uint64_t seed, Progress* progress) {
  HeldOut held_out(rows, seed);
  held_out.solve(progress);
  CrossValidated found{held_out.best(progress), {}};
  found.fit = fit_of(rows, held_out.rows_of(found.mix));
  found.fit.report = report_of(rows, found);
  return found;
}

double cross_validation_work(const NgramRows& rows) {
  const int64_t units = held_out_folds(rows) * (problem_count(rows) * svm_kind_count + 1);
  return static_cast<double>(units) * held_out_work(rows) + mixes_work(rows);
}

}  // namespace capstan
