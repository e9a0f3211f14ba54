// A batch in pieces that fit into memory.
#pragma once

#include <cstdint>
#include <vector>

#include "core/array/batch.hpp"
#include "core/autograd/tape.hpp"
#include "models/task.hpp"

namespace capstan {

/// The batch in pieces of whole rows, each of at most `tokens` tokens (padding included) or of one row; the whole batch
/// when `tokens` is 0. Pieces share the batch's memory.
std::vector<Batch> split_rows(const Batch& batch, int64_t tokens);

/// Sums over the batches of one training step.
struct StepSums {
  double loss = 0;  // nats
  int64_t targets = 0;
  int64_t tokens = 0;  // without padding
};

struct PassOptions {
  int64_t micro_batch_tokens = 0;  // of split_rows
  uint64_t step = 0;               // of dropout
  TapeOptions tape = {};
};

/// Adds the gradients of the batch's summed loss to those of the parameters, piece by piece, and its sums to `sums`.
/// Throws std::domain_error naming the op when the tape checks for values that are not finite.
void add_gradients(const Task& task, const Batch& batch, const PassOptions& options, StepSums& sums);

}  // namespace capstan
