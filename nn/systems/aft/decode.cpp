// AFT token by token: the running state of AFT-simple plus, for a position bias, a ring of the last keys and values.
#include <algorithm>
#include <limits>

#include "core/array/select.hpp"
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
      : capacity(capacity_), running{Array(Shape{batch, keys}), Array(Shape{batch, keys}), Array(Shape{batch, width})} {
    if (capacity > 0) {
      key_ring = Array(Shape{batch, capacity, keys});
      value_ring = Array(Shape{batch, capacity, width});
    }
    AftDecodeState::reset();
  }

  void reset() override {
    position = 0;
    kernels::fill(running.maximum.mutable_data(), running.maximum.size(), std::numeric_limits<real>::lowest());
    kernels::fill(running.weight.mutable_data(), running.weight.size(), real{0});
    kernels::fill(running.average.mutable_data(), running.average.size(), real{0});
  }

  void select(const std::vector<int64_t>& rows) override {
    for (Array* const part : {&running.maximum, &running.weight, &running.average, &key_ring, &value_ring})
      *part = select_rows(*part, rows);
  }
  int64_t batch() const { return running.maximum.dim(0); }
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
  /// Tokens in the ring.
  int64_t cached() const { return std::min(position, capacity); }

  /// The cached tokens, whose queries are left open, and those of qkv (B, T, ...) after them.
  Array with_cached(const Array& qkv) {
    const int64_t before = cached(), length = qkv.dim(1), stride = qkv.dim(2);
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

  int64_t position = 0, capacity;
  AftRunning running;          // of the tokens that are not in the ring
  Array key_ring, value_ring;  // (B, capacity, keys or D)
};

/// Groups of channels as the kernels want them: all at once with a key each, or one head after the other.
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
  auto& state = own_state<AftDecodeState>(mixer_state, "aft");
  check(x.rank() == 3 && x.dim(0) == state.batch() && x.dim(2) == shape_.width,
        "aft: prefill: x is {}, but must be ({}, T, {})", x.shape(), state.batch(), shape_.width);
  const int64_t batch = x.dim(0), length = x.dim(1), end = state.position + length;
  if (length == 0) return x;
  const bool prefix = shape_.prefix && state.position == 0;
  const Var qkv = project(x);
  if (bias_ == Bias::none && !prefix) {
    state.position = end;
    return output(Var(aft_simple_continue(qkv.value(), state.running)));
  }
  const int64_t before = state.cached(), first = state.position - before;  // of the rows
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
    for (int64_t t = std::max(left, state.position); t < end; ++t) {
      std::copy_n(from + (t - first) * stride() + width, keys_, state.key_row(row, t));
      std::copy_n(from + (t - first) * stride() + width + keys_, width, state.value_row(row, t));
    }
  });
  state.position = end;
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
  const int64_t width = inner_;
  auto& state = own_state<AftDecodeState>(mixer_state, "aft");
  const int64_t batch = state.batch(), t = state.position;
  check(x.shape() == Shape{batch, shape_.width}, "aft: step: x is {}, but must be ({}, {})", x.shape(), batch,
        shape_.width);
  const Array qkv = state.decode().linear(x.value(), qkv_weight_, packed_bias());
  Array y(Shape{batch, width});
  real* const y_data = y.mutable_data();
  const int64_t count = std::min(t + 1, state.capacity);
  const Array bias = state.capacity > 0 ? bias_row(t, count) : Array();
  for (int64_t row = 0; row < batch; ++row) {
    const real* const token = qkv.data() + row * stride();
    const real *const k = token + width, *const v = k + keys_;
    if (state.capacity == 0) {
      kernels::aft_scan({token, k, v, 0}, 1, width, state.running_at(row, 0, 0), y_data + row * width, 0, nullptr,
                        nullptr);
      continue;
    }
    real *const ring_k = state.key_row(row, t), *const ring_v = state.value_row(row, t);
    for_each_group(width, heads_, [&](const kernels::AftGroup& group, int64_t key, int64_t channel) {
      const kernels::AftState leaving = state.running_at(row, key, channel);
      if (t >= state.capacity) kernels::aft_carry({nullptr, ring_k + key, ring_v + channel, 0}, 1, group, leaving);
      std::copy_n(k + key, group.keys(), ring_k + key);
      std::copy_n(v + channel, group.channels, ring_v + channel);
      const kernels::AftCache cache{state.key_row(row, 0) + key, state.value_row(row, 0) + channel, keys_, width,
                                    state.capacity};
      kernels::aft_decode(cache, t, count, group, bias.data() + (heads_ > 0 ? key : 0) * count, leaving,
                          token + channel, y_data + row * width + channel);
    });
  }
  ++state.position;
  return Var(to_out_ ? to_out_->step(y, state.decode()) : y);
}

}  // namespace capstan::CAPSTAN_PRECISION
