// AFT token by token: the running state of AFT-simple plus, for a position bias, a ring of the last keys and values.
#include <algorithm>
#include <limits>

#include "core/base/error.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/machine/parallel.hpp"
#include "core/ops/shape.hpp"
#include "nn/systems/aft/kernels/decode.hpp"
#include "nn/systems/aft/kernels/scan.hpp"
#include "nn/systems/aft/mixer.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

struct AftDecodeState final : MixerState {
  AftDecodeState(int64_t batch, int64_t width, int64_t keys, int64_t capacity_)
      : MixerState(batch),
        capacity(capacity_),
        running{Array(Shape{batch, keys}), Array(Shape{batch, keys}), Array(Shape{batch, width})} {
    if (capacity > 0) {
      key_ring = Array(Shape{batch, capacity, keys});
      value_ring = Array(Shape{batch, capacity, width});
    }
    AftDecodeState::reset();
  }

  void reset() override {
    MixerState::reset();
    kernels::fill(running.maximum.mutable_data(), running.maximum.size(), std::numeric_limits<real>::lowest());
  }

  std::vector<Array*> parts() override {
    return {&running.maximum, &running.weight, &running.average, &key_ring, &value_ring};
  }
  int64_t keys() const { return running.maximum.dim(1); }
  int64_t width() const { return running.average.dim(1); }
  int64_t elements(int64_t seen) const override {
    return 2 * keys() + width() + std::min(seen, capacity) * (keys() + width());
  }

  kernels::AftState running_at(int64_t row, int64_t key, int64_t channel) {
    return {running.maximum.mutable_data() + row * keys() + key, running.weight.mutable_data() + row * keys() + key,
            running.average.mutable_data() + row * width() + channel};
  }
  real* key_row(int64_t row, int64_t token) {
    return key_ring.mutable_data() + (row * capacity + token % capacity) * keys();
  }
  real* value_row(int64_t row, int64_t token) {
    return value_ring.mutable_data() + (row * capacity + token % capacity) * width();
  }

  /// The cached tokens, whose queries are left open, and those of qkv (B, T, ...) after them.
  Array with_cached(const Array& qkv) {
    const int64_t position = positions().front(), before = std::min(position, capacity);
    const int64_t length = qkv.dim(1), stride = qkv.dim(2);
    if (before == 0) return qkv;
    Array rows(Shape{batch(), before + length, stride});
    for (int64_t row = 0; row < batch(); ++row) {
      real* to = rows.mutable_data() + row * (before + length) * stride;
      for (int64_t t = position - before; t < position; ++t, to += stride) {
        std::copy_n(key_row(row, t), keys(), to + width());
        std::copy_n(value_row(row, t), width(), to + width() + keys());
      }
      std::copy_n(qkv.data() + row * length * stride, length * stride, to);
    }
    return rows;
  }

  int64_t capacity;
  AftRunning running;          // of the tokens that are not in the ring
  Array key_ring, value_ring;  // (B, capacity, keys or D)
};

/// Calls the body for each group of channels of the kernels: all channels, if each has a key, or one head at a time.
template <class Body>
void for_each_group(int64_t width, int64_t heads, const Body& body) {
  if (heads == 0) return body(kernels::AftGroup{width, false}, int64_t{0}, int64_t{0});
  for (int64_t head = 0; head < heads; ++head)
    body(kernels::AftGroup{width / heads, true}, head, head * (width / heads));
}

}  // namespace

std::unique_ptr<MixerState> Aft::make_state(int64_t batch) const {
  if (!shape_.causal) throw std::logic_error("aft: a bidirectional mixer does not decode");
  return new_state<AftDecodeState>(batch, inner_, keys_, cached_tokens());
}

Var Aft::prefill(const Var& x, MixerState& mixer_state) const {
  const int64_t width = inner_;
  auto& state = prefill_state<AftDecodeState>(mixer_state, "aft", x, shape_.width);
  const int64_t batch = x.dim(0), length = x.dim(1);
  if (batch == 0 || length == 0) return x;
  const int64_t position = state.position(0), end = position + length;
  const bool prefix = shape_.prefix && position == 0;
  const Var qkv = project(x);
  if (bias_ == Bias::none && !prefix) {
    state.advance(batch, length);
    return output(Var(aft_simple_continue(qkv.value(), state.running)));
  }
  const int64_t before = std::min(position, state.capacity), first = position - before;  // of the rows
  const Array rows = state.with_cached(qkv.value());
  const Var mixed = mix(Var(rows), Segments::full(batch, before + length), !prefix, {before, first, &state.running});
  const Var y = output(before > 0 ? slice(mixed, 1, before, before + length) : mixed);  // first: it may be refused
  const int64_t left = std::max(first, end - state.capacity);                           // where the ring begins now
  parallel_each(batch, 1, [&](int64_t row) {
    const real* const from = rows.data() + row * (before + length) * stride();
    for_each_group(width, heads_, [&](const kernels::AftGroup& group, int64_t key, int64_t channel) {
      kernels::aft_carry({from + channel, from + width + key, from + width + keys_ + channel, stride()}, left - first,
                         group, state.running_at(row, key, channel));
    });
    for (int64_t t = std::max(left, position); t < end; ++t) {
      std::copy_n(from + (t - first) * stride() + width, keys_, state.key_row(row, t));
      std::copy_n(from + (t - first) * stride() + width + keys_, width, state.value_row(row, t));
    }
  });
  state.advance(batch, length);
  return y;
}

Array Aft::bias_row(int64_t t, int64_t count) const {
  Array row(Shape{std::max<int64_t>(heads_, 1), count});
  real* const out = row.mutable_data();
  if (bias_ == Bias::taps) {
    const Array all = taps().value();
    for (int64_t head = 0; head < heads_; ++head)
      std::copy_n(all.data() + head * all.dim(1), count, out + head * count);
    return row;
  }
  const int64_t known = bias_ == Bias::dense ? position_bias_.dim(0) : position_u_.dim(0);
  check(t < known, "aft: token {} is past the {} positions of this mixer", t, known);
  for (int64_t lag = 0; lag < count; ++lag) {
    if (bias_ == Bias::dense) {
      out[lag] = position_bias_.value()[t * known + t - lag];
      continue;
    }
    const int64_t rank = position_u_.dim(1);
    const real *const u = position_u_.value().data() + t * rank, *const v =
                                                                     position_v_.value().data() + (t - lag) * rank;
    real w = 0;
#pragma omp simd reduction(+ : w)
    for (int64_t i = 0; i < rank; ++i) w += u[i] * v[i];
    out[lag] = w;
  }
  return row;
}

Var Aft::step(const Var& x, MixerState& mixer_state) const {
  const int64_t width = inner_, rows = x.dim(0);
  auto& state = step_state<AftDecodeState>(mixer_state, "aft", x, shape_.width);
  const Array qkv = state.decode().linear(x.value(), qkv_weight_, packed_bias());
  Array y(Shape{rows, width});
  real* const y_data = y.mutable_data();
  std::vector<Array> biases;  // of each sequence; neighbours at the same position share one
  for (int64_t row = 0; row < rows && state.capacity > 0; ++row) {
    const int64_t t = state.position(row);
    biases.push_back(row > 0 && t == state.position(row - 1) ? biases.back()
                                                             : bias_row(t, std::min(t + 1, state.capacity)));
  }
  const auto one = [&](int64_t row) {
    const real* const token = qkv.data() + row * stride();
    const real *const k = token + width, *const v = k + keys_;
    const int64_t t = state.position(row), count = std::min(t + 1, state.capacity);
    if (state.capacity == 0)
      return kernels::aft_scan({token, k, v, 0}, 1, width, state.running_at(row, 0, 0), y_data + row * width, 0);
    real *const ring_k = state.key_row(row, t), *const ring_v = state.value_row(row, t);
    const real* const bias = biases[static_cast<size_t>(row)].data();
    for_each_group(width, heads_, [&](const kernels::AftGroup& group, int64_t key, int64_t channel) {
      const kernels::AftState leaving = state.running_at(row, key, channel);
      if (t >= state.capacity) kernels::aft_carry({nullptr, ring_k + key, ring_v + channel, 0}, 1, group, leaving);
      std::copy_n(k + key, group.keys(), ring_k + key);
      std::copy_n(v + channel, group.channels, ring_v + channel);
      const kernels::AftCache cache{state.key_row(row, 0) + key, state.value_row(row, 0) + channel, keys_, width,
                                    state.capacity};
      kernels::aft_decode(cache, t, count, group, bias + (heads_ > 0 ? key : 0) * count, leaving, token + channel,
                          y_data + row * width + channel);
    });
  };
  constexpr int64_t serial_work = 1 << 14;  // exponentials of a thread, below which a second one costs more
  parallel_each(rows, 1 + serial_work / (width * (1 + state.capacity)), one);
  state.advance(rows, 1);
  return Var(to_out_ ? to_out_->step(y, state.decode()) : y);
}

}  // namespace capstan::CAPSTAN_PRECISION
