// Finds the weights of a linear classifier: by cross-validation and solving, or by AdaGrad where there are too many
// n-grams. Called by train_linear; docs/notes/ngrams.md has the reasons. tests/train/linear/test_linear.cpp.
#pragma once

#include <cstdint>

#include "core/io/progress.hpp"
#include "nn/params/param_store.hpp"
#include "train/linear/calibration.hpp"
#include "train/linear/ngram_rows.hpp"

namespace capstan {

/// Fills linear.scale, linear.weight and linear.bias. Two classifiers are solved for, each one class against all
/// others: one over TF-IDF features, one over the same times log-count ratios (dual_svm.hpp). Cross-validation over
/// config.folds parts of the rows chooses C of both, their shares in the sum, and the temperature that turns it into
/// logits: by the cross entropy of the held-out rows. Where a text has any number of labels, linear.threshold has for
/// each label the one that is best for these rows. The weights are then solved for with all rows; those of a base
/// classifier join them. A pure function of the rows and the seed; independent of the number of threads. May stop
/// (core/base/stop.hpp). `progress` (may be null) gets fit_work() in all.
LinearFit fit_linear(const NgramRows& rows, ParamStore& params, uint64_t seed, Progress* progress = nullptr);
/// The work of fit_linear(), for progress. 1 is to solve for one class with all rows or, where rows.by_adagrad(), to
/// learn from one row.
double fit_work(const NgramRows& rows);

}  // namespace capstan
