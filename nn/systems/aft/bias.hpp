// The position biases w_ts of AFT, produced and differentiated tile by tile. Internal to the AFT ops: op.cpp makes one,
// AftTiles reads it. tests/nn/systems/aft/test_op.cpp and gradcheck_op.cpp compare each kind with the composed form.
#pragma once

#include <memory>

#include "core/autograd/tape.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Targets [t0, t1) and the sources [s0, s1) that are not joined into a carry; positions within a document.
struct AftTile {
  int64_t t0, t1, s0, s1;
  int64_t targets() const { return t1 - t0; }
  int64_t sources() const { return s1 - s0; }
};

/// One kind of w: its values for a tile, and, in a pullback, the gradients of its parameters.
class AftBias {
 public:
  virtual ~AftBias() = default;
  /// Number of different matrices: 1 for all channels, or one per head.
  virtual int64_t heads() const { return 1; }
  /// Whether w_ts depends on t - s alone, so that tiles of one form have the same weights.
  virtual bool shift_invariant() const { return false; }
  /// w_ts of head `head` into out[(t - t0) * stride + (s - s0)];
  /// entries outside the window are left for the caller to set.
  virtual void logits(const AftTile& tile, int64_t head, real* out, int64_t stride) const = 0;
  /// Adds what the gradient of those values, 0 outside the window, is for the parameters; where the bias is
  /// shift-invariant, it is the sum over tiles of one form. Not for several threads at once.
  virtual void add_gradient(const AftTile& tile, int64_t head, const real* dlogits, int64_t stride) = 0;
  /// Gradients of the parameters, in the order of the op's inputs after qkv.
  virtual Grads take_gradients() = 0;
};

/// `needs` selects the gradients to be prepared; null for the forward pass. Inputs are numbered from 1 (0 is qkv).
std::unique_ptr<AftBias> factorised_bias(const Array& u, const Array& v, const Needs* needs);
std::unique_ptr<AftBias> dense_bias(const Array& w, const Needs* needs);
/// `centre`: the tap of t - s = 0.
std::unique_ptr<AftBias> tap_bias(const Array& taps, int64_t centre, const Needs* needs);

}  // namespace capstan::CAPSTAN_PRECISION
