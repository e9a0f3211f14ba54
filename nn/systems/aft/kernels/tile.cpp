// Where channels have keys of their own, keys are in the lanes like the channels; a shared key is a scalar, with one
// exp for all channels of its group.
#include "nn/systems/aft/kernels/tile.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/math.hpp"
#include "core/kernels/simd_sums.hpp"
#include "nn/systems/aft/kernels/recurrence.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {
namespace {

using simd::Batch;

/// aft_carry() where all channels share a key.
void carry_shared(const AftInput& in, int64_t length, const AftGroup& group, const AftState& state) {
  for (int64_t t = 0; t < length; ++t) {
    const real k = in.k[t * in.stride], small = math::exp(-std::abs(k - *state.maximum));
    const bool rises = k > *state.maximum;
    const real beta = rises ? 1 : small;
    *state.weight = (rises ? small : 1) * *state.weight + beta;
    *state.maximum = std::max(*state.maximum, k);
    const real gate = beta / *state.weight;
    simd::sweep(group.channels, [&](auto at) {
      const Batch r = at.load(state.average);
      at.store(state.average, r + Batch(gate) * (at.load(in.v + t * in.stride) - r));
    });
  }
}

}  // namespace

void aft_carry(const AftInput& in, int64_t length, const AftGroup& group, const AftState& state) {
  if (group.shared_key) return carry_shared(in, length, group, state);
  simd::sweep_groups<aft_group_size>(group.channels, [&](auto registers) {
    AftRecurrence<decltype(registers)> recurrence(registers, state);
    for (int64_t t = 0; t < length; ++t)
      for (int i = 0; i < registers.size; ++i) {
        const auto& at = registers.places[i];
        recurrence.advance(i, at.load(in.k + t * in.stride), at.load(in.v + t * in.stride));
      }
    recurrence.store();
  });
}

void aft_key_maximum(const AftInput& in, int64_t length, const AftGroup& group, real* reference) {
  if (group.shared_key) {
    for (int64_t t = 0; t < length; ++t) *reference = std::max(*reference, in.k[t * in.stride]);
    return;
  }
  simd::sweep(group.channels, [&](auto at) {
    Batch m = at.load(reference);
    for (int64_t t = 0; t < length; ++t) m = xsimd::max(m, at.load(in.k + t * in.stride));
    at.store(reference, m);
  });
}

void aft_pack(const AftInput& in, int64_t length, const AftGroup& group, const real* reference, real* rows,
              int64_t row_stride) {
  for (int64_t t = 0; t < length; ++t) {
    real* const row = rows + t * row_stride;
    const real *const k = in.k + t * in.stride, *const v = in.v + t * in.stride;
    if (group.shared_key) {
      const real e = math::exp(*k - *reference);
      simd::sweep(group.channels, [&](auto at) { at.store(row, Batch(e) * at.load(v)); });
      row[group.channels] = e;
    } else {
      simd::sweep(group.channels, [&](auto at) {
        const Batch e = simd::exp(at.load(k) - at.load(reference));
        at.store(row, e * at.load(v));
        at.store(row + group.channels, e);
      });
    }
  }
}

void aft_pack_carry(const AftState& carry, const AftGroup& group, const real* reference, real* row) {
  const int64_t step = group.shared_key ? 0 : 1;
  for (int64_t key = 0; key < group.keys(); ++key)
    row[group.channels + key] = carry.weight[key] * math::exp(carry.maximum[key] - reference[key]);
  for (int64_t c = 0; c < group.channels; ++c) row[c] = row[group.channels + c * step] * carry.average[c];
}

bool aft_finish(const AftInput& in, int64_t length, const AftGroup& group, const real* sums, int64_t sum_stride,
                real floor, real* y, real* average, int64_t y_stride, real* denominator, int64_t denominator_stride) {
  Batch vanished(0);
  for (int64_t t = 0; t < length; ++t) {
    const real *const row = sums + t * sum_stride, *const weight = row + group.channels;
    real* const kept = denominator + t * denominator_stride;
    if (group.shared_key) {
      *kept = *weight >= floor ? *weight : 0;
      if (!(*weight >= floor)) vanished = Batch(1);
    }
    simd::sweep(group.channels, [&](auto at) {
      const Batch d = group.shared_key ? Batch(*weight) : at.load(weight, floor), r = at.load(row) / d;
      at.store(average + t * y_stride, r);
      at.store(y + t * y_stride, simd::sigmoid(at.load(in.q + t * in.stride)) * r);
      if (group.shared_key) return;
      const auto present = d >= Batch(floor);
      at.store(kept, xsimd::select(present, d, Batch(0)));
      vanished += xsimd::select(present, Batch(0), Batch(1));
    });
  }
  return simd::maximum(vanished) > 0;
}

bool aft_start_backward(const AftInput& in, int64_t length, const AftGroup& group, const real* dy, const real* average,
                        int64_t y_stride, const real* denominator, int64_t denominator_stride, real* dq,
                        int64_t dq_stride, real* rows, int64_t row_stride) {
  Batch vanished(0);
  for (int64_t t = 0; t < length; ++t) {
    real* const row = rows + t * row_stride;
    const real* const d = denominator + t * denominator_stride;
    simd::Sum dot;
    simd::sweep_sums(group.channels, [&](auto at) {
      const Batch r = at.load(average + t * y_stride), open = simd::sigmoid(at.load(in.q + t * in.stride));
      const Batch h = at.load(dy + t * y_stride) * open;
      at.store(dq + t * dq_stride, h * r * (Batch(1) - open));
      const Batch weight = group.shared_key ? Batch(*d) : at.load(d, 1);
      const Batch p = xsimd::select(weight > Batch(0), h / weight, Batch(0));
      vanished += xsimd::select(weight > Batch(0), Batch(0), Batch(1));
      at.store(row, p);
      if (group.shared_key)
        dot[at] = simd::fma(p, r, dot[at]);
      else
        at.store(row + group.channels, -(p * r));
    });
    if (group.shared_key) row[group.channels] = -dot.total();
  }
  return simd::maximum(vanished) > 0;
}

void aft_scatter(const AftInput& in, int64_t length, const AftGroup& group, const real* exp_rows, int64_t exp_stride,
                 const real* g, int64_t g_stride, const AftGradient& out) {
  for (int64_t t = 0; t < length; ++t) {
    const real *const e = exp_rows + t * exp_stride + group.channels, *const gv = g + t * g_stride,
                      *const gk = gv + group.channels;
    const real* const v = in.v + t * in.stride;
    real *const dk = out.k + t * out.stride, *const dv = out.v + t * out.stride;
    if (group.shared_key) {
      *dk += *e * (*gk + simd::dot(v, gv, group.channels));
    }
    simd::sweep(group.channels, [&](auto at) {
      const Batch weight = group.shared_key ? Batch(*e) : at.load(e), gradient = at.load(gv);
      at.store(dv, at.load(dv) + weight * gradient);
      if (!group.shared_key) at.store(dk, at.load(dk) + weight * (at.load(v) * gradient + at.load(gk)));
    });
  }
}

void aft_softmax_weights(real* row, int64_t count, real maximum) {
  simd::sweep(count, [&](auto at) { at.store(row, simd::exp(at.load(row) - Batch(maximum))); });
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
