// Passes over the flat parameter blocks: norm and optimizer updates; called by train/optimizers. No result
// depends on the thread count. tests/train/test_optimizer.cpp compares them with loops, tests/nn/layers/test_parity.cpp
// AdamW with PyTorch's.
#pragma once

#include <cstdint>

#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// Sum of in_i^2, added up in double over fixed pieces. Finite exactly when every in_i is (for float).
double sum_of_squares(const real* in, int64_t count);
/// sum_of_squares() of a row of a table, on the calling thread.
double row_squares(const real* row, int64_t width);

/// Rows of a table that take part in an update.
struct TableRows {
  int64_t offset, width;  // of the table, within the blocks of values and states
  const int64_t* rows;
  const real* grads;  // (count, width)
  int64_t count;
  bool decay;
};

/// The blocks one update works on: their first `count` elements, and the rows of tables after them that have a
/// gradient; other rows and their moments stay as they are. Gradients are multiplied by grad_scale on the
/// fly, and the first `count` are zero afterwards; weight decay applies to [0, decay_size) and to the rows of tables
/// with `decay`.
struct UpdateBlocks {
  real* values;
  real* grads;
  int64_t count;
  int64_t decay_size;
  double grad_scale;
  const TableRows* tables = nullptr;
  int64_t table_count = 0;
};

struct AdamWStep {
  double lr, beta1, beta2, epsilon, weight_decay;
  int64_t step;  // optimizer step from 1, for the bias corrections
};
/// m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2,  w = (1 - lr d) w - lr m' / (sqrt(v') + epsilon) with
/// m' = m / (1 - b1^step), v' = v / (1 - b2^step).  Loshchilov and Hutter 2019, arXiv 1711.05101.
void adamw(const UpdateBlocks& blocks, real* m, real* v, const AdamWStep& step);

struct SgdStep {
  double lr, momentum, weight_decay;
};
/// g' = g + d w,  m = momentum m + g',  w -= lr m. Decay is part of the gradient here, as in plain L2 regularisation.
void sgd(const UpdateBlocks& blocks, real* m, const SgdStep& step);

struct LionStep {
  double lr, beta1, beta2, weight_decay;
};
/// w = (1 - lr d) w - lr sign(b1 m + (1 - b1) g),  m = b2 m + (1 - b2) g.  Chen et al. 2023, arXiv 2302.06675.
void lion(const UpdateBlocks& blocks, real* m, const LionStep& step);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
