// Three forms of w: the product of two tables, a matrix, and taps by distance. Each reads and adds up only the entries
// of the tile that it is asked for. Gradients go where GradSink says: into a parameter's block, or into a new array.
#include "nn/systems/aft/bias.hpp"

#include <algorithm>

#include "core/autograd/grad_sink.hpp"
#include "core/autograd/tape.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/products/gemm.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// Where the gradient of a parameter is added up, tile by tile; nowhere in the forward pass.
GradSink sink_for(const Array& parameter, const Needs* needs, size_t input) {
  if (needs == nullptr) return {};
  GradSink sink(*needs, input, parameter.shape());
  if (sink && sink.beta() == 0) kernels::fill(sink.data(), parameter.size(), real{0});
  return sink;
}

/// w = u v^T.
class FactorisedBias final : public AftBias {
 public:
  FactorisedBias(const Array& u, const Array& v, const Needs* needs)
      : u_(u), v_(v), du_(sink_for(u, needs, 1)), dv_(sink_for(v, needs, 2)) {}

  void logits(const AftTile& tile, int64_t, real* out, int64_t stride) const override {
    gemm(tile.targets(), tile.sources(), rank(), {row(u_, tile.t0), rank()}, {row(v_, tile.s0), rank(), Transpose::yes},
         out, stride);
  }
  void add_gradient(const AftTile& tile, int64_t, const real* dlogits, int64_t stride) override {
    if (du_)
      gemm(tile.targets(), rank(), tile.sources(), {dlogits, stride}, {row(v_, tile.s0), rank()},
           du_.data() + tile.t0 * rank(), rank(), 1, 1);
    if (dv_)
      gemm(tile.sources(), rank(), tile.targets(), {dlogits, stride, Transpose::yes}, {row(u_, tile.t0), rank()},
           dv_.data() + tile.s0 * rank(), rank(), 1, 1);
  }
  Grads take_gradients() override { return {du_.grad(), dv_.grad()}; }

 private:
  int64_t rank() const { return u_.dim(1); }
  static const real* row(const Array& matrix, int64_t index) { return matrix.data() + index * matrix.dim(1); }

  Array u_, v_;
  GradSink du_, dv_;
};

/// w itself.
class DenseBias final : public AftBias {
 public:
  DenseBias(const Array& w, const Needs* needs) : w_(w), dw_(sink_for(w, needs, 1)) {}

  void logits(const AftTile& tile, int64_t, real* out, int64_t stride) const override {
    for (int64_t t = tile.t0; t < tile.t1; ++t)
      std::copy_n(w_.data() + t * w_.dim(1) + tile.s0, tile.sources(), out + (t - tile.t0) * stride);
  }
  void add_gradient(const AftTile& tile, int64_t, const real* dlogits, int64_t stride) override {
    if (!dw_) return;
    for (int64_t t = tile.t0; t < tile.t1; ++t)
      kernels::add_into(dw_.data() + t * w_.dim(1) + tile.s0, dlogits + (t - tile.t0) * stride, tile.sources());
  }
  Grads take_gradients() override { return {dw_.grad()}; }

 private:
  Array w_;
  GradSink dw_;
};

/// w_ts = taps[head, t - s + centre].
class TapBias final : public AftBias {
 public:
  TapBias(const Array& taps, int64_t centre, const Needs* needs)
      : taps_(taps), centre_(centre), dtaps_(sink_for(taps, needs, 1)) {}

  int64_t heads() const override { return taps_.dim(0); }
  bool shift_invariant() const override { return true; }
  void logits(const AftTile& tile, int64_t head, real* out, int64_t stride) const override {
    for_each_tap(tile, head,
                 [&](int64_t row, int64_t column, int64_t tap) { out[row * stride + column] = taps_[tap]; });
  }
  void add_gradient(const AftTile& tile, int64_t head, const real* dlogits, int64_t stride) override {
    if (!dtaps_) return;
    for_each_tap(tile, head, [&](int64_t row, int64_t column, int64_t tap) {
      dtaps_.data()[tap] += dlogits[row * stride + column];
    });
  }
  Grads take_gradients() override { return {dtaps_.grad()}; }

 private:
  /// body(row, column, index into taps) for the entries of the tile that have a tap.
  template <class Body>
  void for_each_tap(const AftTile& tile, int64_t head, const Body& body) const {
    const int64_t count = taps_.dim(1);
    for (int64_t t = tile.t0; t < tile.t1; ++t) {
      const int64_t first = std::max(tile.s0, t + centre_ - count + 1), last = std::min(tile.s1 - 1, t + centre_);
      for (int64_t s = first; s <= last; ++s) body(t - tile.t0, s - tile.s0, head * count + t - s + centre_);
    }
  }

  Array taps_;
  int64_t centre_;
  GradSink dtaps_;
};

}  // namespace

std::unique_ptr<AftBias> factorised_bias(const Array& u, const Array& v, const Needs* needs) {
  return std::make_unique<FactorisedBias>(u, v, needs);
}
std::unique_ptr<AftBias> dense_bias(const Array& w, const Needs* needs) {
  return std::make_unique<DenseBias>(w, needs);
}
std::unique_ptr<AftBias> tap_bias(const Array& taps, int64_t centre, const Needs* needs) {
  return std::make_unique<TapBias>(taps, centre, needs);
}

}  // namespace capstan::CAPSTAN_PRECISION
