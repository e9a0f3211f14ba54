// Work is cut into units, a kind and a problem of a fold each, which threads share out and files keep (unit_work.hpp).
// Scores of held-out rows are kept, so that mixes and temperatures are tried without solving again.
// tests/train/linear/test_linear.cpp.
#include "train/linear/cross_validation.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/stop.hpp"

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
constexpr SvmKind intercept_kind{false, intercept_cost};  // a kind that takes as long to solve as the intercept

std::vector<SvmMix> all_mixes() {
  std::vector<SvmMix> mixes;
  for (int plain = 0; plain < svm_kind_count; ++plain)
    for (int ratios = 0; ratios < svm_kind_count; ++ratios) {
      if (svm_kinds[plain].ratios || !svm_kinds[ratios].ratios) continue;
      for (const auto& share : shares) mixes.push_back({plain, ratios, share[0], share[1], 1, 0});
    }
  return mixes;
}

/// work_of() where a fold is held out, so that there are fewer rows.
double held_out_work_of(const NgramRows& rows, const SvmKind& kind) {
  const auto folds = static_cast<double>(folds_of(rows));
  return (folds - 1) / folds * work_of(kind);
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
  double of_fold = 0;
  for (const SvmKind& kind : svm_kinds) of_fold += held_out_work_of(rows, kind);
  return static_cast<double>(held_out_folds(rows)) *
             (static_cast<double>(problem_count(rows)) * of_fold + held_out_work_of(rows, intercept_kind)) +
         mixes_work(rows);
}

std::string identity_of(const NgramRows& rows, uint64_t seed) {
  return fmt::format("{} {} {}", seed, rows.config().buckets, rows.rows());
}

SvmSolution solve_kind(const NgramRows& rows, std::vector<int64_t> learnt, int64_t problem, int kind, uint64_t seed,
                       UnitRun* run) {
  const auto [ratios, cost] = svm_kinds[kind];
  return solve_svm(
      rows, {std::move(learnt), positive_class(rows, problem), cost, ratios, random_key(seed, "order of rows")}, run);
}

SvmSolution solve_intercept(const NgramRows& rows, std::vector<int64_t> learnt, uint64_t seed, UnitRun* run) {
  SvmProblem problem{std::move(learnt), 0, intercept_cost, false, random_key(seed, "order of rows")};
  problem.intercept = true;
  return solve_svm(rows, problem, run);
}

HeldOut::HeldOut(const NgramRows& rows, uint64_t seed)
    : rows_(rows), seed_(seed), problems_(problem_count(rows)), log_priors_(log_priors(rows)) {
  const std::vector<int32_t> folds = folds_of_rows(rows, folds_of(rows));
  const int64_t used = held_out_folds(rows);
  const int64_t max_rows = max_held_out_rows(rows);
  parts_.resize(static_cast<size_t>(used));
  for (int64_t row = 0; row < rows.rows(); ++row) {
    for (int64_t part = 0; part < used; ++part) {
      Part& p = parts_[static_cast<size_t>(part)];
      if (folds[static_cast<size_t>(row)] != part)
        p.learnt.push_back(row);
      else if (static_cast<int64_t>(p.held_out.size()) < max_rows)
        p.held_out.push_back(row);
    }
  }
  for (Part& part : parts_) {
    part.unknown.assign(static_cast<size_t>(problems_ * svm_kind_count), 0);
    part.scores.assign(part.held_out.size() * part.unknown.size(), 0);
    part.intercept.assign(part.held_out.size(), 0);
  }
}

/// Units of work are, for each part, its kinds times problems, and then its intercept.
void HeldOut::solve(Progress* progress) {
  UnitWork::Units all;
  const int64_t of_part = svm_kind_count * problems_ + 1;
  all.count = static_cast<int64_t>(parts_.size()) * of_part;
  all.work = [&](int64_t unit) {
    const int64_t kind = unit % of_part / problems_;
    return held_out_work_of(rows_, kind == svm_kind_count ? intercept_kind : svm_kinds[kind]);
  };
  all.result = [&](int64_t unit) { return result_of(unit); };
  UnitWork units(rows_.work(), "folds", identity_of(rows_, seed_), std::move(all));
  units.run(progress, [&](int64_t unit, UnitRun& run) {
    solve_unit(unit, run);
    units.finished({unit});
  });
}

void HeldOut::solve_unit(int64_t unit, UnitRun& run) {
  const int64_t scores = svm_kind_count * problems_, of_part = unit % (scores + 1), kind = of_part / problems_;
  Part& part = parts_[static_cast<size_t>(unit / (scores + 1))];
  if (part.learnt.empty()) return;
  const auto score = [&](const SvmSolution& solved, float* out, int64_t step) {
    for (size_t i = 0; i < part.held_out.size(); ++i) {
      stop_point();
      out[static_cast<int64_t>(i) * step] = solved.score(rows_, part.held_out[i]);
    }
  };
  if (of_part == scores) return score(solve_intercept(rows_, part.learnt, seed_, &run), part.intercept.data(), 1);
  const SvmSolution solved = solve_kind(rows_, part.learnt, of_part % problems_, static_cast<int>(kind), seed_, &run);
  score(solved, part.scores.data() + of_part, scores);
  part.unknown[static_cast<size_t>(of_part)] = solved.score_of_unknown(rows_);
}

std::vector<StridedNumbers> HeldOut::result_of(int64_t unit) {
  const int64_t scores = svm_kind_count * problems_, of_part = unit % (scores + 1);
  Part& part = parts_[static_cast<size_t>(unit / (scores + 1))];
  const auto rows = static_cast<int64_t>(part.held_out.size());
  if (of_part == scores) return {{part.intercept.data(), rows}};
  return {{part.unknown.data() + of_part, 1}, {part.scores.data() + of_part, rows, scores}};
}

SvmMix HeldOut::best(Progress* progress) const {
  std::vector<SvmMix> mixes = all_mixes();
  UnitWork::Units all;
  all.count = static_cast<int64_t>(mixes.size());
  all.work = [work = mixes_work(rows_) / static_cast<double>(all.count)](int64_t) { return work; };
  all.result = [&](int64_t unit) -> std::vector<StridedNumbers> {
    SvmMix& mix = mixes[static_cast<size_t>(unit)];
    mix.corrections.resize(rows_.weighs_classes() ? static_cast<size_t>(rows_.classes()) : 0);
    return {{&mix.inverse_temperature, 1},
            {&mix.loss, 1},
            {mix.corrections.data(), static_cast<int64_t>(mix.corrections.size())}};
  };
  UnitWork units(rows_.work(), "mixes", identity_of(rows_, seed_), std::move(all));
  units.run(progress, [&](int64_t unit, UnitRun&) {
    choose_temperature(mixes[static_cast<size_t>(unit)]);
    units.finished({unit});
  });
  return *std::min_element(mixes.begin(), mixes.end(),
                           [](const SvmMix& a, const SvmMix& b) { return a.loss < b.loss; });
}

void HeldOut::choose_temperature(SvmMix& mix) const {
  int64_t count = 0;
  for (const Part& part : parts_) count += static_cast<int64_t>(part.held_out.size());
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

std::vector<double> HeldOut::logits_of(const Part& part, size_t held_out, const SvmMix& mix) const {
  const auto problems = static_cast<size_t>(problems_);
  std::vector<double> logits(static_cast<size_t>(rows_.classes()));
  const float* const scores = part.scores.data() + held_out * part.unknown.size();
  const double absence = 1 - static_cast<double>(part.intercept[held_out]);
  for (size_t p = 0; p < problems; ++p) {
    const size_t plain = static_cast<size_t>(mix.plain) * problems + p,
                 ratios = static_cast<size_t>(mix.ratios) * problems + p,
                 column = static_cast<size_t>(positive_class(rows_, static_cast<int64_t>(p)));
    const auto mixed = [&](const float* kind_scores) {
      return mix.plain_share * static_cast<double>(kind_scores[plain]) +
             mix.ratios_share * static_cast<double>(kind_scores[ratios]);
    };
    logits[column] = mix.inverse_temperature * (mixed(scores) - absence * mixed(part.unknown.data())) +
                     absence * log_priors_[column];
    if (!mix.corrections.empty()) logits[column] += (1 - absence) * mix.corrections[column];
  }
  if (rows_.is_binary()) logits[0] = -logits[1];
  return logits;
}

void HeldOut::visit(const Part& part, const SvmMix& mix, const RowVisit& take) const {
  for (size_t i = 0; i < part.held_out.size(); ++i) {
    stop_point();
    const int64_t row = part.held_out[i];
    take(logits_of(part, i, mix), rows_.labels(row), rows_.relative_weight(row));
  }
}

/// All held-out rows, with the logits of a mix, which must outlive the function.
VisitRows HeldOut::rows_of(const SvmMix& mix) const {
  return [this, &mix](const RowVisit& take) {
    for (const Part& part : parts_) visit(part, mix, take);
  };
}

LinearFit HeldOut::fit(const SvmMix& mix) const { return fit_of(rows_, rows_of(mix)); }

std::vector<double> HeldOut::accuracies(const SvmMix& mix) const {
  std::vector<double> result;
  for (const Part& part : parts_) {
    if (part.held_out.empty()) continue;
    const auto of_part = [&](const RowVisit& take) { visit(part, mix, take); };
    result.push_back(statistics_of(rows_, of_part).of_rows.accuracy());
  }
  return result;
}

}  // namespace capstan
