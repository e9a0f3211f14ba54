#include "train/loop/evaluate.hpp"

#include <algorithm>
#include <atomic>

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/machine/parallel.hpp"
#include "data/batches/prefetch.hpp"
#include "train/loop/micro_batches.hpp"

namespace capstan {
namespace {

/// Of the batches that are evaluated at once: more of them take more memory, not less time.
constexpr int64_t most_tokens = int64_t{1} << 17;

Evaluation sums_of(const Task& task, const Batch& batch, int64_t micro_batch_tokens, const std::function<bool()>& stop,
                   std::atomic<bool>& stopped) {
  const TapePause no_tape;
  Evaluation sums;
  for (const Batch& piece : split_rows(batch, micro_batch_tokens)) {
    if (stopped || (stop && stop())) {
      stopped = true;
      break;
    }
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
  one_epoch.depth = std::max<int64_t>(one_epoch.depth, threads());
  Prefetcher batches(split, one_epoch);
  std::atomic<bool> stopped{false};
  // A batch runs on one thread, and sums are added in the order of the batches: no result depends on how many run at once.
  for (bool more = true; more;) {
    std::vector<Batch> group;
    int64_t tokens = 0;
    while (more && static_cast<int>(group.size()) < threads() && tokens < most_tokens) {
      auto prepared = batches.next();
      more = prepared.has_value();
      if (!more) break;
      group.push_back(std::move(prepared->batch));
      tokens += group.back().tokens.size();
    }
    std::vector<Evaluation> sums(group.size());
    parallel_units(static_cast<int64_t>(group.size()), [&](int64_t i) {
      const OneThread alone;
      const MemoryFor purpose("an evaluation: lower train.micro_batch_tokens or threads");
      sums[static_cast<size_t>(i)] = sums_of(task, group[static_cast<size_t>(i)], micro_batch_tokens, stop, stopped);
    });
    if (stopped) return std::nullopt;
    for (const Evaluation& part : sums) total.add(part);
  }
  if (total.targets == 0) throw Error("evaluation: the split has no targets: give more text or more examples");
  return total;
}

}  // namespace capstan
