// Work is cut into units, a kind and a problem of a fold each, which threads share out and a file keeps
// (unit_work.hpp). Scores of held-out rows are kept, so that mixes and temperatures are tried without solving again.
// tests/train/linear/test_linear.cpp.
#include "train/linear/cross_validation.hpp"

#include <algorithm>

#include "core/base/stop.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {
namespace {

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
  for (int plain = 0; plain < svm_kind_count; ++plain)
    for (int ratios = 0; ratios < svm_kind_count; ++ratios) {
      if (svm_kinds[plain].ratios || !svm_kinds[ratios].ratios) continue;
      for (const auto& share : shares) mixes.push_back({plain, ratios, share[0], share[1], 1, 0});
    }
  return mixes;
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

}  // namespace

int64_t folds_of(const NgramRows& rows) {
  return std::min(rows.config().folds, rows.rows() - static_cast<int64_t>(rows.copies().size()));
}

int64_t held_out_folds(const NgramRows& rows) {
  const double work = static_cast<double>(rows.entries() + rows.rows()) * static_cast<double>(problem_count(rows));
  return std::clamp(static_cast<int64_t>(max_work / work), int64_t{1}, folds_of(rows));
}

double cross_validation_work(const NgramRows& rows) {
  const int64_t units = held_out_folds(rows) * (problem_count(rows) * svm_kind_count + 1);
  return static_cast<double>(units) * held_out_work(rows) + mixes_work(rows);
}

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

HeldOut::HeldOut(const NgramRows& rows, uint64_t seed)
    : rows_(rows),
      seed_(seed),
      problems_(problem_count(rows)),
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
  unknown_.assign(static_cast<size_t>(used * scores_of_row()), 0);
  scores_.assign(held_out_.size() * static_cast<size_t>(scores_of_row()), 0);
  intercept_.assign(held_out_.size(), 0);
}

/// Units of work are, for each fold that is held out, its kinds times problems, and then its intercept.
void HeldOut::solve(Progress* progress) {
  const int64_t of_fold = scores_of_row() + 1, folds = held_out_folds(rows_);
  const auto held_out = static_cast<int64_t>(held_out_.size());
  UnitWork units({rows_.work(), "folds"}, folds * of_fold,
                 {{"scores", {held_out, scores_of_row()}, scores_.data()},
                  {"unknown", {folds, scores_of_row()}, unknown_.data()},
                  {"intercept", {held_out}, intercept_.data()}});
  units.run(progress, held_out_work(rows_),
            [&](int64_t unit, const UnitWork::TellShare& tell) { return solve_unit(unit, tell); });
}

UnitWork::FillIn HeldOut::solve_unit(int64_t unit, const UnitWork::TellShare& tell) {
  const int64_t fold = unit / (scores_of_row() + 1), of_fold = unit % (scores_of_row() + 1);
  std::vector<int64_t> learnt;
  for (int64_t row = 0; row < rows_.rows(); ++row)
    if (folds_[static_cast<size_t>(row)] != fold) learnt.push_back(row);
  if (learnt.empty()) return {};
  const bool is_intercept = of_fold == scores_of_row();
  const SvmSolution solved =
      is_intercept ? solve_intercept(rows_, std::move(learnt), seed_, tell)
                   : solve_kind(rows_, std::move(learnt), of_fold % problems_, of_fold / problems_, seed_, tell);
  const size_t first = starts_[static_cast<size_t>(fold)], last = starts_[static_cast<size_t>(fold) + 1];
  std::vector<float> scores;
  for (size_t i = first; i < last; ++i) {
    stop_point();
    scores.push_back(solved.score(rows_, held_out_[i]));
  }
  return [=, scores = std::move(scores), unknown = solved.score_of_unknown(rows_)] {
    if (is_intercept) {
      std::copy(scores.begin(), scores.end(), intercept_.begin() + static_cast<std::ptrdiff_t>(first));
      return;
    }
    const auto step = static_cast<size_t>(scores_of_row()), column = static_cast<size_t>(of_fold);
    for (size_t i = first; i < last; ++i) scores_[i * step + column] = scores[i - first];
    unknown_[static_cast<size_t>(fold) * step + column] = unknown;
  };
}

SvmMix HeldOut::best(Progress* progress) const {
  std::vector<SvmMix> mixes = all_mixes();
  parallel_units(static_cast<int64_t>(mixes.size()), [&](int64_t i) {
    choose_temperature(mixes[static_cast<size_t>(i)]);
    if (progress != nullptr) progress->add(mixes_work(rows_) / static_cast<double>(mixes.size()));
  });
  return *std::min_element(mixes.begin(), mixes.end(),
                           [](const SvmMix& a, const SvmMix& b) { return a.loss < b.loss; });
}

void HeldOut::choose_temperature(SvmMix& mix) const {
  const auto count = static_cast<int64_t>(held_out_.size());
  const int rounds = rows_.weighs_classes() ? 3 : 1;
  mix.corrections.clear();
  for (int round = 0; round < rounds; ++round) {
    const auto [inverse, loss] = fit_temperature(count, [&](double tried) {
      mix.inverse_temperature = tried;
      return statistics_of(rows_, rows_of(mix));
    });
    mix.inverse_temperature = inverse;
    mix.loss = loss;
    if (!rows_.weighs_classes()) return;
    SvmMix without = mix;
    without.corrections.clear();
    mix.corrections = prior_corrections(rows_, rows_of(without));
    mix.loss = statistics_of(rows_, rows_of(mix)).of_rows.loss_sum;
  }
}

std::vector<double> HeldOut::logits_of(size_t held_out, const SvmMix& mix) const {
  const auto problems = static_cast<size_t>(problems_), of_row = static_cast<size_t>(scores_of_row());
  std::vector<double> logits(static_cast<size_t>(rows_.classes()));
  const auto fold = static_cast<size_t>(folds_[static_cast<size_t>(held_out_[held_out])]);
  const float *const scores = scores_.data() + held_out * of_row, *const unknown = unknown_.data() + fold * of_row;
  const double absence = 1 - static_cast<double>(intercept_[held_out]);
  for (size_t p = 0; p < problems; ++p) {
    const size_t plain = static_cast<size_t>(mix.plain) * problems + p,
                 ratios = static_cast<size_t>(mix.ratios) * problems + p,
                 column = static_cast<size_t>(positive_class(rows_, static_cast<int64_t>(p)));
    const auto mixed = [&](const float* kind_scores) {
      return mix.plain_share * static_cast<double>(kind_scores[plain]) +
             mix.ratios_share * static_cast<double>(kind_scores[ratios]);
    };
    logits[column] =
        mix.inverse_temperature * (mixed(scores) - absence * mixed(unknown)) + absence * log_priors_[column];
    if (!mix.corrections.empty()) logits[column] += (1 - absence) * mix.corrections[column];
  }
  if (rows_.is_binary()) logits[0] = -logits[1];
  return logits;
}

/// All held-out rows, with the logits of a mix, which must outlive the function.
VisitRows HeldOut::rows_of(const SvmMix& mix) const {
  return [this, &mix](const RowVisit& take) {
    for (size_t i = 0; i < held_out_.size(); ++i) {
      stop_point();
      take(logits_of(i, mix), rows_.labels(held_out_[i]), rows_.relative_weight(held_out_[i]));
    }
  };
}

}  // namespace capstan
