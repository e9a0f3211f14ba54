// Linear classifiers of more n-grams than can be solved for: epochs of AdaGrad over rows that are kept, or made again
// in each epoch. The other way of fit_linear(), for NgramRows::by_adagrad(); docs/notes/ngrams.md has the reasons.
// tests/train/linear/test_linear.cpp.
#pragma once

#include <cstdint>

#include "core/io/progress.hpp"
#include "nn/params/param_store.hpp"
#include "train/linear/calibration.hpp"
#include "train/linear/ngram_rows.hpp"

namespace capstan {

/// Fills linear.weight and linear.bias, as fit_linear() does, in a time that is linear in the entries of the rows.
/// Epochs of AdaGrad (adagrad.hpp) with a rate that falls to 0. The bias stays that of the log priors. Rows that are
/// held out tell the temperature of the result. A pure function of the rows and the seed, with the same bits on any
/// number of threads and whether rows are kept or not. May stop (core/base/stop.hpp); what was finished is kept
/// (WorkFile). `progress` (may be null) gets adagrad_work() in all.
LinearFit fit_by_adagrad(const NgramRows& rows, ParamStore& params, uint64_t seed, Progress* progress);
/// The work of fit_by_adagrad(): how many rows it learns from in all its epochs.
double adagrad_work(const NgramRows& rows);

}  // namespace capstan
