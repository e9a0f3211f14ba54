#include "train/loop/evaluate.hpp"

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/machine/parallel.hpp"
#include "data/batches/prefetch.hpp"
#include "train/loop/micro_batches.hpp"

namespace capstan {
namespace {

Evaluation sums_of(const Task& task, const Batch& batch, int64_t micro_batch_tokens,
                   const std::function<bool()>& stop) {
  const TapePause no_tape;
  Evaluation sums;
  for (const Batch& piece : split_rows(batch, micro_batch_tokens)) {
    if (stop && stop()) break;
    const TaskLoss loss = task.loss(piece, Context{Segments(piece.segment_ids)});
    sums.add({static_cast<double>(loss.sum.value().item()), loss.targets, loss.correct});
  }
  return sums;
}

}  // namespace

void Evaluation::add(const Evaluation& other) {
  loss_sum += other.loss_sum;
  targets += other.targets;
  correct += other.correct;
}

std::optional<Evaluation> evaluate(const Task& task, const BatchSource& split, int64_t micro_batch_tokens,
                                   const std::function<bool()>& stop) {
  Evaluation total;
  Prefetcher::Options one_epoch;
  one_epoch.end_epoch = 1;
  Prefetcher batches(split, one_epoch);
  // A batch runs on one thread, and sums are added in the order of the batches: no result depends on how many run at once.
  for (bool more = true; more;) {
    std::vector<Batch> group;
    while (more && static_cast<int>(group.size()) < threads()) {
      auto prepared = batches.next();
      more = prepared.has_value();
      if (more) group.push_back(std::move(prepared->batch));
    }
    std::vector<Evaluation> sums(group.size());
    parallel_units(static_cast<int64_t>(group.size()), [&](int64_t i) {
      const OneThread alone;
      sums[static_cast<size_t>(i)] = sums_of(task, group[static_cast<size_t>(i)], micro_batch_tokens, stop);
    });
    if (stop && stop()) return std::nullopt;
    for (const Evaluation& part : sums) total.add(part);
  }
  if (total.targets == 0) throw Error("evaluation: the split has no targets: give more text or more examples");
  return total;
}

}  // namespace capstan
