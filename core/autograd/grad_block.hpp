// Where the gradients of a store's parameters are added up: one block in the ParamStore (nn/params), and one for each
// lane of a batch (train/steps/lanes.cpp), which are then added along a fixed tree. tests/core/autograd/test_tape.cpp
// and tests/train/test_lanes.cpp hold who adds where, and in which order.
#pragma once

#include <vector>

#include "core/array/row_grads.hpp"
#include "core/base/no_copy.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// The gradients of all parameters of a store: of tables that are updated by rows, those of the rows that were read; of
/// the others, one dense block in the store's layout.
class GradBlock {
 public:
  GradBlock() = default;
  /// All gradients are 0: `dense` elements, and those of `tables` tables.
  GradBlock(int64_t dense, size_t tables) : dense_(Array::zeros(Shape{dense})), tables_(tables) {}

  const Array& dense() const { return dense_; }
  real* data() { return dense_.shared_data(); }
  std::vector<RowGrads>& tables() { return tables_; }
  const std::vector<RowGrads>& tables() const { return tables_; }

  /// Adds the gradients of `other` to this block; all gradients of `other` are 0 afterwards. Throws
  /// std::invalid_argument for a block of another store.
  void add(GradBlock& other);
  void clear();

 private:
  Array dense_;
  std::vector<RowGrads> tables_;
};

/// While it lives, pullbacks on this thread add the gradients of the parameters of `store` to `lane` instead: lanes of
/// a batch share the parameters and have gradients of their own. The innermost one counts; it ends on its own thread.
class LaneGrads : NoCopy {
 public:
  LaneGrads(const GradBlock& store, GradBlock& lane);
  ~LaneGrads();

  /// The block that gets the gradients for `store` on this thread: the lane's, if a lane of `store` is active, else
  /// `store` itself.
  static GradBlock& of(GradBlock& store);

 private:
  const GradBlock* store_;
  GradBlock* lane_;
  LaneGrads* previous_;
};

}  // namespace capstan::CAPSTAN_PRECISION
