// Training of a linear classifier: its weights are solved for, all at once.
#pragma once

#include "data/batches/labelled_texts.hpp"
#include "models/linear_classifier.hpp"
#include "train/linear/ngram_rows.hpp"
#include "train/loop/session.hpp"

namespace capstan {

/// Solves for the weights, unless the session goes on from a run that has; evaluates and saves. Without validation
/// texts, what cross-validation found of held-out texts takes their place. All that a signal can interrupt is repeated
/// by the next call. The state counts as many steps and epochs as the configuration asks for, at least one.
TrainResult train_linear(Session& session, const Model& classifier, const NgramRows& rows, LabelledTexts* valid,
                         const RunParts& parts);

}  // namespace capstan
