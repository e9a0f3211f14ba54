// Cross-validation of a linear classifier: which weights are solved for with all texts, and how sure it may be of them.
// Used by fit_linear alone; docs/notes/ngrams.md has the reasons. The bits do not depend on threads, and what was
// stopped goes on to the same bits: tests/train/linear/test_linear.cpp, test_unfinished.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "core/io/progress.hpp"
#include "train/linear/calibration.hpp"
#include "train/linear/dual_svm.hpp"
#include "train/linear/unit_work.hpp"

namespace capstan {

/// What makes logits of scores: inverse_temperature * (plain_share * scores of `plain` + ratios_share * scores of
/// `ratios`).
struct SvmMix {
  int64_t plain, ratios;  // kinds of solve_kind()
  double plain_share, ratios_share;
  double inverse_temperature = 1;
  double loss = 0;                       // of held-out rows, which the temperature minimises
  std::vector<double> corrections = {};  // by class, added to the logits where classes have weights
};

/// How many problems are solved for: with two classes a single one, a class against the other; otherwise one for each
/// class, against all others.
inline int64_t problem_count(const NgramRows& rows) { return rows.is_binary() ? 1 : rows.classes(); }
/// With two classes, the problem's only class is the second one.
inline int32_t positive_class(const NgramRows& rows, int64_t problem) {
  return static_cast<int32_t>(rows.is_binary() ? 1 : problem);
}

/// The solution of a problem with the rows `learnt`. A kind is TF-IDF or the same times log-count ratios, with a cost.
SvmSolution solve_kind(const NgramRows& rows, std::vector<int64_t> learnt, int64_t problem, int64_t kind, uint64_t seed,
                       const UnitWork::TellShare& tell);
/// The n-grams' weights with which the score of a text that has some is about 1; of one without, it is 0.
SvmSolution solve_intercept(const NgramRows& rows, std::vector<int64_t> learnt, uint64_t seed,
                            const UnitWork::TellShare& tell = {});

/// The mix with the lowest loss, with the temperature of fit_temperature(), and what the held-out rows tell of it.
struct CrossValidated {
  SvmMix mix;
  LinearFit fit;
};
/// `progress` (may be null) gets cross_validation_work(). What is finished is kept (UnitWork). May stop
/// (core/base/stop.hpp).
CrossValidated cross_validate(const NgramRows& rows, uint64_t seed, Progress* progress);
/// The work of cross_validate(). 1 is to solve for one class with all rows.
double cross_validation_work(const NgramRows& rows);

}  // namespace capstan
