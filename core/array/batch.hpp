// One batch of examples: what data/batches makes, and what Task::loss() (models/model.hpp) reads. Rows of a batch may
// be computed by different threads and processes, so nothing here may depend on where a row is in the batch.
#pragma once

#include "core/array/array.hpp"

namespace capstan {

/// Target of a position whose loss is not counted; CrossEntropyOptions::ignored (core/fused) is the same by default.
constexpr int32_t ignored_target = -1;

/// B examples padded to T tokens.
struct Batch {
  Ids tokens;       // (B, T); padding holds token 0
  Ids segment_ids;  // (B, T): 0 = padding, otherwise the document (Segments)
  // language model: (B, T), the next token or ignored_target; classifier: (B), multi-label (B, C) of 0 and 1
  Ids labels;
  Ids examples;        // (B): index of each example in its epoch's order
  Array weights = {};  // (B): factors of the examples' losses in training; empty: 1
};

}  // namespace capstan
