// What attention() and its composed form are asked for, by the mixers of attention, gau and flash.
#pragma once

#include "core/array/array.hpp"
#include "core/ops/softmax.hpp"
#include "nn/systems/quadratic/kernels/attention_kernel.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Which keys a query sees, and what becomes of their logits.
struct AttentionOptions {
  AttentionKernel kernel = AttentionKernel::softmax;
  int64_t heads = 1;
  bool causal = false;
  /// > 0: a query sees only the keys of its own chunk of that many positions; chunks start at a document's position 0.
  int64_t chunk = 0;
  /// logits_ij = scale * row_scale_i * (q_i . k_j) + b_(i-j)
  double scale = 1;
  Array row_scale = {};     // (B, T), constant; empty: 1
  Array output_scale = {};  // (B, T), constant factor of each query's output; empty: 1
  /// Products of whole blocks are of operands that are rounded to bf16, where the CPU has instructions for it: the
  /// projections around them are in bf16.
  bool bf16 = false;
  int64_t tile = 0;  // queries of a tile and keys of a block; 0: chosen by the op. Changes rounding only.
};

}  // namespace capstan::CAPSTAN_PRECISION
