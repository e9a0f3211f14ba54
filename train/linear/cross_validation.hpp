// Cross-validation of a linear classifier: which weights are solved for with all texts, and how sure it may be of them.
// Used by fit_linear alone; docs/notes/ngrams.md has the reasons. The bits do not depend on threads, and what was
// stopped goes on to the same bits: tests/train/linear/test_linear.cpp, test_unfinished.cpp.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/io/progress.hpp"
#include "train/linear/calibration.hpp"
#include "train/linear/dual_svm.hpp"
#include "train/linear/unit_work.hpp"

namespace capstan {

/// One of the two kinds of features, TF-IDF or the same times log-count ratios, with a cost C.
struct SvmKind {
  bool ratios;  // features times their log-count ratios
  double cost;  // C of SvmProblem
};
constexpr SvmKind svm_kinds[] = {{false, 0.25}, {false, 1}, {true, 0.25}, {true, 1}};
constexpr int svm_kind_count = 4;

/// What makes logits of scores: inverse_temperature * (plain_share * scores of `plain` + ratios_share * scores of
/// `ratios`).
struct SvmMix {
  int plain = -1, ratios = -1;  // of `svm_kinds`; -1: not part of it
  double plain_share = 0, ratios_share = 0, inverse_temperature = 1;
  double loss = std::numeric_limits<double>::infinity();  // of held-out rows, which the temperature minimises
  std::vector<double> corrections = {};                   // by class, added to the logits where classes have weights
};

/// How many problems are solved for: with two classes a single one, a class against the other; otherwise one for each
/// class, against all others.
inline int64_t problem_count(const NgramRows& rows) { return rows.is_binary() ? 1 : rows.classes(); }
/// With two classes, the problem's only class is the second one.
inline int32_t positive_class(const NgramRows& rows, int64_t problem) {
  return static_cast<int32_t>(rows.is_binary() ? 1 : problem);
}

/// The solution of a problem in a kind, with the rows `learnt`.
SvmSolution solve_kind(const NgramRows& rows, std::vector<int64_t> learnt, int64_t problem, int64_t kind, uint64_t seed,
                       const UnitWork::TellShare& tell);
/// The n-grams' weights with which the score of a text that has some is about 1; of one without, it is 0.
SvmSolution solve_intercept(const NgramRows& rows, std::vector<int64_t> learnt, uint64_t seed,
                            const UnitWork::TellShare& tell = {});
/// Into how many folds the rows are divided, and how many of the folds are held out in turn: of large data not all, to
/// save time.
int64_t folds_of(const NgramRows& rows);
int64_t held_out_folds(const NgramRows& rows);

/// The work of HeldOut::solve() and best(). 1 is to solve for one class with all rows.
double cross_validation_work(const NgramRows& rows);

/// Scores of held-out rows. The bias of a solution is also its score of a text without known n-grams, where it means
/// nothing. So the logits of such a text are the log priors of the classes, and rows whose intercept
/// (solve_intercept) is between 0 and 1 have logits in between.
class HeldOut {
 public:
  HeldOut(const NgramRows& rows, uint64_t seed);

  /// Solves for the held-out folds. `progress` (may be null) gets cross_validation_work() from this and best()
  /// together. What is finished is kept (UnitWork). Like all methods below, it may stop (core/base/stop.hpp).
  void solve(Progress* progress);
  /// The mix with the lowest loss, with the temperature of fit_temperature().
  SvmMix best(Progress* progress) const;
  /// What the held-out rows tell of a mix.
  LinearFit fit(const SvmMix& mix) const { return fit_of(rows_, rows_of(mix)); }

 private:
  int64_t scores_of_row() const { return svm_kind_count * problems_; }
  UnitWork::FillIn solve_unit(int64_t unit, const UnitWork::TellShare& tell);
  void choose_temperature(SvmMix& mix) const;
  std::vector<double> logits_of(size_t held_out, const SvmMix& mix) const;
  VisitRows rows_of(const SvmMix& mix) const;

  const NgramRows& rows_;
  uint64_t seed_;
  int64_t problems_;
  std::vector<double> log_priors_;  // log_priors()
  std::vector<int32_t> folds_;      // by row
  std::vector<int64_t> held_out_;   // rows, by fold
  std::vector<size_t> starts_;      // by fold that is held out: its first place in held_out_; then the end
  std::vector<float> scores_;       // (held out, kinds, problems)
  std::vector<float> unknown_;      // (folds, kinds, problems): the score of a text without known n-grams
  std::vector<float> intercept_;    // (held out)
};

}  // namespace capstan
