#include "train/loop/micro_batches.hpp"

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
    pieces.push_back({batch.tokens.rows(begin, end), batch.segment_ids.rows(begin, end), batch.labels.rows(begin, end),
                      batch.examples.empty() ? batch.examples : batch.examples.rows(begin, end)});
  }
  return pieces;
}

void add_gradients(const Task& task, const Batch& batch, const PassOptions& options, StepSums& sums) {
  for (const Batch& piece : split_rows(batch, options.micro_batch_tokens)) {
    TapeScope tape(options.tape);
    const Context context{Segments(piece.segment_ids), true, options.step, piece.examples};
    const TaskLoss loss = task.loss(piece, context);
    sums.loss += static_cast<double>(loss.sum.value().item());
    sums.targets += loss.targets;
    sums.tokens += context.segments.valid();
    tape.backward(loss.sum);
  }
}

}  // namespace capstan
