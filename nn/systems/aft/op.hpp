// Attention Free Transformer: the fused, linear-memory ops. Zhai et al. 2021, arXiv 2105.14103.
//
// All take the packed projection q|k|v and compute, per channel c,
//   R_tc = sum_{s visible to t} e^(K_sc + w_ts) V_sc / sum_{s visible to t} e^(K_sc + w_ts),   Y_t = sigmoid(Q_t) R_t.
// Padding tokens see nothing: their Y is 0 and they get no gradient. Nothing of size T x T is stored. Called by the
// mixer beside this; tests/nn/systems/aft/test_op.cpp holds the fused ops to their definition in composed.hpp, which
// stores such a table.
#pragma once

#include "core/array/array.hpp"
#include "core/array/segments.hpp"
#include "core/autograd/tape.hpp"
#include "nn/systems/aft/past.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// AFT-simple, w = 0.  qkv: (B, T, 3D) -> (B, T, D).  Saves qkv and, causal, the state (AftRunning: maximum, weight,
/// average) in front of every 128th token of a document, from which the pullback forms gates and averages again;
/// bidirectional, two values per document and channel. Throws std::invalid_argument naming the shapes.
Var aft_simple(const Var& qkv, const Segments& segments, bool causal);

/// aft_simple, causal, for the next T tokens of B sequences: goes on from `state` and leaves it after them. qkv: (B, T,
/// 3D) -> (B, T, D). Records nothing.
Array aft_simple_continue(const Array& qkv, AftRunning& state);

struct AftOptions {
  int64_t tile = 0;   // targets of a tile; 0: chosen by the op. Changes rounding only.
  AftPast past = {};  // none: documents begin with their first row
};

/// w_ts = u_t . v_s inside the window (|t - s| < window; 0 = no limit), 0 outside it; positions count within documents.
/// u, v: (N, rank) with N >= the longest document. qkv: (B, T, 3D) -> (B, T, D). Saves R and the denominators.
/// AFT-full (window 0) and AFT-local.
Var aft_factorised(const Var& qkv, const Var& u, const Var& v, const Segments& segments, bool causal, int64_t window,
                   const AftOptions& options = {});

/// AFT with a dense w: (N, N), read only inside the window.
Var aft_dense(const Var& qkv, const Var& w, const Segments& segments, bool causal, int64_t window,
              const AftOptions& options = {});

/// AFT-conv: w_ts = taps[h, t - s + centre] for the H heads h of contiguous channels; K has one channel per head.
/// taps: (H, window) for lags 0 ... window - 1 when causal, (H, 2 window - 1) for t - s = -(window - 1) ... window - 1
/// otherwise; w = 0 outside.  qkv: (B, T, D + H + D) -> (B, T, D).
Var aft_conv(const Var& qkv, const Var& taps, const Segments& segments, bool causal, const AftOptions& options = {});

}  // namespace capstan::CAPSTAN_PRECISION
