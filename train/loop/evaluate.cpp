#include "train/loop/evaluate.hpp"

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "data/batches/prefetch.hpp"
#include "train/loop/micro_batches.hpp"

namespace capstan {

std::optional<Evaluation> evaluate(const Task& task, const BatchSource& split, int64_t micro_batch_tokens,
                                   const std::function<bool()>& stop) {
  const TapePause no_tape;
  Evaluation total;
  Prefetcher::Options one_epoch;
  one_epoch.end_epoch = 1;
  Prefetcher batches(split, one_epoch);
  while (const auto prepared = batches.next()) {
    for (const Batch& piece : split_rows(prepared->batch, micro_batch_tokens)) {
      if (stop && stop()) return std::nullopt;
      const TaskLoss loss = task.loss(piece, Context{Segments(piece.segment_ids)});
      total.loss_sum += static_cast<double>(loss.sum.value().item());
      total.targets += loss.targets;
      total.correct += loss.correct;
    }
  }
  if (total.targets == 0) throw Error("evaluation: the split has no targets: give more text or more examples");
  return total;
}

}  // namespace capstan
