#include <algorithm>

#include "core/array/segment_masks.hpp"
#include "core/base/error.hpp"
#include "core/machine/parallel.hpp"
#include "core/machine/profile.hpp"
#include "nn/systems/aft/kernels/scan.hpp"
#include "nn/systems/aft/op.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// Channels that one thread carries through a whole document: four AVX-512 registers of float.
constexpr int64_t block = 64;

/// body(span index, span, first channel, channels) for every document and block of channels; units are independent.
template <class Body>
void for_each_unit(const Segments& segments, int64_t channels, const Body& body) {
  const int64_t blocks = (channels + block - 1) / block;
  const int64_t spans = static_cast<int64_t>(segments.spans().size());
  parallel_units(spans * blocks, [&](int64_t unit) {
    const int64_t span = unit / blocks, first = unit % blocks * block;
    body(span, segments.spans()[static_cast<size_t>(span)], first, std::min(block, channels - first));
  });
}

kernels::AftInput input_at(const Array& qkv, int64_t row, int64_t channel) {
  const int64_t stride = qkv.dim(-1), width = stride / 3;
  const real* const q = qkv.data() + row * stride + channel;
  return {q, q + width, q + 2 * width, stride};
}

kernels::AftGradient gradient_at(real* dqkv, int64_t stride, int64_t row, int64_t channel) {
  real* const q = dqkv + row * stride + channel;
  return {q, q + stride / 3, q + 2 * (stride / 3), stride};
}

void check_inputs(const Var& qkv, const Segments& segments) {
  check(qkv.rank() == 3 && qkv.dim(2) % 3 == 0 && qkv.dim(0) == segments.batch() && qkv.dim(1) == segments.length(),
        "aft_simple: qkv {} is not (B, T, 3D) with the (B, T) of segments {}", qkv.shape(), segments.ids().shape());
}

Var causal_scan(const Var& qkv, const Segments& segments) {
  const int64_t length = qkv.dim(1), width = qkv.dim(2) / 3;
  const bool keep = recording({qkv});
  const Shape shape{qkv.dim(0), length, width};
  Array y(shape), gate(keep ? shape : Shape{0}), average(keep ? shape : Shape{0});
  real *const y_data = y.mutable_data(), *const gate_data = gate.mutable_data(),
              *const average_data = average.mutable_data();
  clear_padding(y_data, width, segments);
  for_each_unit(segments, width, [&](int64_t, const Segments::Span& span, int64_t c, int64_t channels) {
    real state[3 * block];
    const kernels::AftState recurrent{state, state + block, state + 2 * block};
    kernels::aft_state_clear(recurrent, channels, channels);
    const int64_t row = span.row * length + span.begin, at = row * width + c;
    kernels::aft_scan(input_at(qkv.value(), row, c), span.length(), channels, recurrent, y_data + at, width,
                      keep ? gate_data + at : nullptr, keep ? average_data + at : nullptr);
  });
  return make_var(
      "aft_simple", y, {qkv},
      [x = qkv.value(), gate, average, segments, length, width](const Array& dy, const Needs&) -> Grads {
        Array dqkv(x.shape());
        real* const out = dqkv.mutable_data();
        clear_padding(out, 3 * width, segments);
        for_each_unit(segments, width, [&](int64_t, const Segments::Span& span, int64_t c, int64_t channels) {
          const int64_t row = span.row * length + span.begin, at = row * width + c;
          kernels::aft_scan_backward(input_at(x, row, c), span.length(), channels, dy.data() + at, gate.data() + at,
                                     average.data() + at, width, gradient_at(out, 3 * width, row, c));
        });
        return {dqkv};
      });
}

Var bidirectional_pool(const Var& qkv, const Segments& segments) {
  const int64_t length = qkv.dim(1), width = qkv.dim(2) / 3;
  const Shape per_document{static_cast<int64_t>(segments.spans().size()), width};
  Array y(Shape{qkv.dim(0), length, width}), logsum(per_document), average(per_document);
  real *const y_data = y.mutable_data(), *const logsum_data = logsum.mutable_data(),
              *const average_data = average.mutable_data();
  clear_padding(y_data, width, segments);
  for_each_unit(segments, width, [&](int64_t index, const Segments::Span& span, int64_t c, int64_t channels) {
    const int64_t row = span.row * length + span.begin, state = index * width + c;
    const kernels::AftInput in = input_at(qkv.value(), row, c);
    kernels::aft_pool(in, span.length(), channels, logsum_data + state, average_data + state);
    kernels::aft_pool_apply(in, span.length(), channels, average_data + state, y_data + row * width + c, width);
  });
  return make_var("aft_simple", y, {qkv},
                  [x = qkv.value(), logsum, average, segments, length, width](const Array& dy, const Needs&) -> Grads {
                    Array dqkv(x.shape());
                    real* const out = dqkv.mutable_data();
                    clear_padding(out, 3 * width, segments);
                    for_each_unit(
                        segments, width, [&](int64_t index, const Segments::Span& span, int64_t c, int64_t channels) {
                          const int64_t row = span.row * length + span.begin, state = index * width + c;
                          kernels::aft_pool_backward(input_at(x, row, c), span.length(), channels,
                                                     dy.data() + row * width + c, width, logsum.data() + state,
                                                     average.data() + state, gradient_at(out, 3 * width, row, c));
                        });
                    return {dqkv};
                  });
}

}  // namespace

Array aft_simple_continue(const Array& qkv, AftRunning& state) {
  const ProfileSpan span;
  const int64_t batch = qkv.dim(0), length = qkv.dim(1), width = qkv.dim(2) / 3;
  Array y(Shape{batch, length, width});
  real *const out = y.mutable_data(), *const maximum = state.maximum.mutable_data(),
              *const weight = state.weight.mutable_data(), *const average = state.average.mutable_data();
  for_each_unit(Segments::full(batch, length), width,
                [&](int64_t, const Segments::Span& tokens, int64_t c, int64_t channels) {
                  const int64_t row = tokens.row * length, at = tokens.row * width + c;
                  kernels::aft_scan(input_at(qkv, row, c), length, channels, {maximum + at, weight + at, average + at},
                                    out + row * width + c, width, nullptr, nullptr);
                });
  return y;
}

Var aft_simple(const Var& qkv, const Segments& segments, bool causal) {
  const ProfileSpan span;
  check_inputs(qkv, segments);
  return causal ? causal_scan(qkv, segments) : bidirectional_pool(qkv, segments);
}

}  // namespace capstan::CAPSTAN_PRECISION
