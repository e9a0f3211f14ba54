// Linear support vector machines over the rows of n-grams, solved in the dual: what cross-validation and fit_linear
// solve for. The order of rows is drawn from a seed and sums go in the order of entries, so a solution has the same
// bits on any number of threads: tests/train/linear/test_linear.cpp ("dual coordinate descent: ..."),
// test_base_classifier.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/random.hpp"
#include "train/linear/ngram_rows.hpp"

namespace capstan {

/// One class against all others: texts that have the label, and those that do not.
struct SvmProblem {
  std::vector<int64_t> rows;  // the rows to learn from
  int32_t positive = 0;       // the class whose rows have y = 1; all others have y = -1
  double cost = 1;            // C
  bool ratios = false;        // multiply features by their log-count ratios
  RandomKey order = {};       // the order in which rows are visited follows from it
  double tolerance = 0.1;     // of the projected gradient of the dual, which is 1 at first
  bool intercept = false;  // all rows count as positive, and only n-grams are features: no bias, no scores of the base
};

/// y = w . x + u . s + bias. w, by bucket, is multiplied with norm * count_weight() of the entries of NgramRows, whose
/// scale is part of w. s: the scores of the base classifier, if there is one.
struct SvmSolution {
  std::vector<float> weights;
  float bias = 0;
  std::vector<float> base_weights;  // u

  /// y of a row.
  float score(const NgramRows& rows, int64_t row) const;
  /// y of a text without known n-grams.
  float score_of_unknown(const NgramRows& rows) const;
};

/// min over w, u, b of (|w'|^2 + |u|^2 + b^2) / 2 + C sum_i g_i max(0, 1 - y_i (w' . x'_i + u . s_i + b))^2,
/// g_i = NgramRows::weight(), by dual coordinate descent with shrinking (Hsieh et al. 2008, algorithm 3, as in
/// LIBLINEAR). x' = x, or with `ratios` x times the bucket's r = ln((p / |p|) / (q / |q|)), p and q = 1 + the numbers
/// of its texts inside and outside of the class (Wang and Manning 2012); the solution's w is r w'. A pure function of
/// its arguments. May stop (core/base/stop.hpp). `tell` gets an estimate of the share of the work that is done, after
/// each pass.
SvmSolution solve_svm(const NgramRows& rows, const SvmProblem& problem,
                      const std::function<void(double share)>& tell = {});

}  // namespace capstan
