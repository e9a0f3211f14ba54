#include "data/batches/micro_batches.hpp"

#include <algorithm>

namespace capstan {

std::vector<Batch> split_rows(const Batch& batch, int64_t tokens) {
  const int64_t rows = batch.tokens.dim(0), length = batch.tokens.dim(1);
  if (tokens <= 0 || rows * length <= tokens) return {batch};
  // The fewest pieces within the limit, of equal height: GEMMs are slow on a short last piece.
  const int64_t most = std::max<int64_t>(1, tokens / std::max<int64_t>(length, 1));
  const int64_t count = (rows + most - 1) / most;
  std::vector<Batch> pieces;
  for (int64_t piece = 0; piece < count; ++piece) {
    const int64_t begin = rows * piece / count, end = rows * (piece + 1) / count;
    pieces.push_back(rows_of(batch, begin, end));
  }
  return pieces;
}

}  // namespace capstan
