// A batch in pieces that fit into memory.
#pragma once

#include <cstdint>
#include <vector>

#include "data/batches/batcher.hpp"

namespace capstan {

/// The batch in pieces of whole rows, each of at most `tokens` tokens (padding included) or of one row; the whole batch
/// when `tokens` is 0. Pieces share the batch's memory.
std::vector<Batch> split_rows(const Batch& batch, int64_t tokens);

}  // namespace capstan
