// What attention() and its composed form are asked for, by the mixers of attention, gau and flash.
#pragma once

#include "core/array/array.hpp"
#include "core/ops/dropout.hpp"
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
  /// While training: which weights f(logit) become 0, after the softmax's normalisation; the others are scaled by
  /// 1 / (1 - rate) (Srivastava et al. 2014). A pure function of (key, head, example, places of query and key in the
  /// row, step); its `positions` are not used.
  DropoutOptions dropout = {};
  /// Products of whole blocks are of operands that are rounded to bf16, where the CPU has instructions for it: the
  /// projections around them are in bf16.
  bool bf16 = false;
  int64_t tile = 0;  // queries of a tile and keys of a block; 0: chosen by the op. Changes rounding only.
};

/// The key of one head's dropout.
inline RandomKey head_key(const RandomKey& key, int64_t head) {
  return {key.seed, key.stream + static_cast<uint64_t>(head) * 0x9E3779B97F4A7C15u};
}

}  // namespace capstan::CAPSTAN_PRECISION
