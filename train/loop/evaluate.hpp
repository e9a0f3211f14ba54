// Loss and accuracy over a whole split.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "data/batches/batcher.hpp"
#include "models/task.hpp"

namespace capstan {

/// Sums over all targets of a split, so that means do not depend on how it is divided into batches.
struct Evaluation {
  double loss_sum = 0;  // nats
  int64_t targets = 0;
  int64_t correct = 0;
  void add(const Evaluation& other);
  double loss() const { return loss_sum / static_cast<double>(targets > 0 ? targets : 1); }
  double bits() const { return loss() / 0.6931471805599453; }
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(targets > 0 ? targets : 1); }
};

/// Runs `task` over epoch 0 of `split`, each batch on one thread; the result does not depend on the number of threads. As
/// many batches as there are threads run at once, as far as they have no more than 131,072 tokens together. Empty when
/// `stop`, which is called from any thread, returned true.
/// Throws Error when there are no targets.
std::optional<Evaluation> evaluate(const Task& task, const BatchSource& split, int64_t micro_batch_tokens = 0,
                                   const std::function<bool()>& stop = {});

}  // namespace capstan
