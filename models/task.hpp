// The interface of a model to the training loop: a loss. Models implement it; tests of training have small tasks of
// their own (tests/train/support.hpp).
#pragma once

#include <cstdint>

#include "core/array/batch.hpp"
#include "core/autograd/var.hpp"
#include "nn/layers/context.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Loss of one batch: a sum and the number of targets it runs over, kept apart so that batch size, padding,
/// accumulation and ranks do not change the mean.
struct TaskLoss {
  Var sum;                   // scalar, nats
  int64_t targets = 0;       // labels that were not ignored
  int64_t correct = 0;       // targets whose label got the highest logit; counted in evaluation only
  Array probabilities = {};  // (B, C), of a classifier in evaluation only
};

/// A model together with its loss. Const: parameters live in the ParamStore. loss() is called by several threads at
/// once (lanes, evaluation), so it must not change any state of the model.
class Task {
 public:
  virtual ~Task() = default;
  virtual TaskLoss loss(const Batch& batch, const Context& context) const = 0;
  /// Number of labels of which a text may have any; 0 unless the task is multi-label classification.
  virtual int64_t label_columns() const { return 0; }
};

}  // namespace capstan::CAPSTAN_PRECISION
