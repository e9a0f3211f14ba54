// aft_factorised(), aft_dense() and aft_conv() are one op with three biases: they check shapes, choose the length of
// tiles and leave the work to AftTiles. The pullback makes the bias again, this time with room for gradients.
// aft_simple() is in scan.cpp.
#include "nn/systems/aft/op.hpp"

#include <algorithm>
#include <functional>

#include "core/base/error.hpp"
#include "core/machine/profile.hpp"
#include "nn/systems/aft/tiles.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// A tile reads window - 1 sources beyond its targets: short tiles repeat them, long ones multiply zeros. Without a
/// window it reads all of them, which a long tile does less often.
int64_t tile_length(const AftOptions& options, int64_t window) {
  if (options.tile != 0) return options.tile;
  return window == 0 ? 256 : std::clamp<int64_t>((window + 31) / 32 * 32, 64, 128);
}

using MakeBias = std::function<std::unique_ptr<AftBias>(const Needs*)>;

/// The op with any bias. `make_bias` gets the needs of the pullback, or null for the forward pass.
Var tiled(const char* op, const std::vector<Var>& inputs, const AftLayout& layout, const MakeBias& make_bias) {
  const ProfileSpan span;
  check(layout.tile > 0, "{}: tile {} is negative", op, layout.tile);
  const Array& qkv = inputs.front().value();
  check(layout.past.position + layout.past.sources == 0 || (layout.causal && !recording(inputs)),
        "{}: what goes on from a state is causal and has no gradient", op);
  const int64_t batch = layout.segments.batch(), length = layout.segments.length();
  check(qkv.rank() == 3 && qkv.dim(0) == batch && qkv.dim(1) == length && qkv.dim(2) == layout.stride(),
        "{}: qkv {} is not (B, T, {}) with the (B, T) of segments {}", op, qkv.shape(), layout.stride(),
        layout.segments.ids().shape());
  const Shape shape{batch, length, layout.width};
  Array y(shape), average(shape), denominator(Shape{batch, length, layout.keys()});
  const std::unique_ptr<AftBias> bias = make_bias(nullptr);
  AftTiles(qkv, layout, *bias).forward(y.mutable_data(), average.mutable_data(), denominator.mutable_data());
  return make_var(op, y, inputs, [qkv, average, denominator, layout, make_bias](const Array& dy, const Needs& needs) {
    Array dqkv(qkv.shape());
    const std::unique_ptr<AftBias> parameters = make_bias(&needs);
    AftTiles(qkv, layout, *parameters).backward(dy.data(), average.data(), denominator.data(), dqkv.mutable_data());
    Grads grads{dqkv};
    for (Grad& grad : parameters->take_gradients()) grads.push_back(std::move(grad));
    return grads;
  });
}

void check_window(const char* op, int64_t window) { check(window >= 0, "{}: window {} is negative", op, window); }

}  // namespace

Var aft_factorised(const Var& qkv, const Var& u, const Var& v, const Segments& segments, bool causal, int64_t window,
                   const AftOptions& options) {
  check(u.rank() == 2 && u.shape() == v.shape(), "aft_factorised: u {} and v {} are not both (N, rank)", u.shape(),
        v.shape());
  const int64_t longest = options.past.position + segments.longest();
  check(u.dim(0) >= longest, "aft_factorised: a document has {} tokens, but u and v have only {} positions", longest,
        u.dim(0));
  check_window("aft_factorised", window);
  const AftLayout layout{segments, qkv.dim(-1) / 3, 0, causal, window, tile_length(options, window), options.past};
  return tiled("aft_factorised", {qkv, u, v}, layout,
               [u = u.value(), v = v.value()](const Needs* needs) { return factorised_bias(u, v, needs); });
}

Var aft_dense(const Var& qkv, const Var& w, const Segments& segments, bool causal, int64_t window,
              const AftOptions& options) {
  check(w.rank() == 2 && w.dim(0) == w.dim(1), "aft_dense: w {} is not (N, N)", w.shape());
  const int64_t longest = options.past.position + segments.longest();
  check(w.dim(0) >= longest, "aft_dense: a document has {} tokens, but w has only {} positions", longest, w.dim(0));
  check_window("aft_dense", window);
  const AftLayout layout{segments, qkv.dim(-1) / 3, 0, causal, window, tile_length(options, window), options.past};
  return tiled("aft_dense", {qkv, w}, layout, [w = w.value()](const Needs* needs) { return dense_bias(w, needs); });
}

Var aft_conv(const Var& qkv, const Var& taps, const Segments& segments, bool causal, const AftOptions& options) {
  check(taps.rank() == 2 && taps.dim(1) >= 1 && (causal || taps.dim(1) % 2 == 1),
        "aft_conv: taps {} are not (H, window) causal or (H, 2 window - 1) bidirectional", taps.shape());
  const int64_t heads = taps.dim(0), window = causal ? taps.dim(1) : (taps.dim(1) + 1) / 2;
  const int64_t width = (qkv.dim(-1) - heads) / 2;
  check(width % heads == 0, "aft_conv: width {} is not a multiple of {} heads", width, heads);
  const AftLayout layout{segments, width, heads, causal, window, tile_length(options, window), options.past};
  return tiled("aft_conv", {qkv, taps}, layout, [taps = taps.value(), causal, window](const Needs* needs) {
    return tap_bias(taps, causal ? 0 : window - 1, needs);
  });
}

}  // namespace capstan::CAPSTAN_PRECISION
