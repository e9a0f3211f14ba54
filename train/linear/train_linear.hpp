// Training of a linear classifier: its weights are solved for, all at once, in the session of a run. Called by
// run/training/train_run; `capstan verify --replay` solves again and compares.
// tests/train/linear/test_train_linear.cpp, tests/cli/training/test_linear.cpp and long_linear_kills.sh.
#pragma once

#include "data/batches/labelled_texts.hpp"
#include "models/linear_classifier.hpp"
#include "train/linear/ngram_rows.hpp"
#include "train/loop/session.hpp"

namespace capstan {

/// Solves for the weights, unless a resumed run already has them, then evaluates and saves. Without validation texts,
/// the result of cross-validation takes the place of the evaluation. The next call repeats what a signal interrupts.
/// The state counts as many steps and epochs as are configured, but at least one.
TrainResult train_linear(Session& session, const Model& classifier, const NgramRows& rows, LabelledTexts* valid,
                         const RunParts& parts);

}  // namespace capstan
