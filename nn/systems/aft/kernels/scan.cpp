// AFT-simple for aft_scan(), its pullback, and the bidirectional pool. Groups of registers are computed together, since
// the recurrence of one channel is a chain of dependent operations. tests/nn/systems/aft/test_op.cpp.
#include "nn/systems/aft/kernels/scan.hpp"

#include <limits>

#include "nn/systems/aft/kernels/recurrence.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {
namespace {

using simd::Batch;

}  // namespace

void aft_scan(const AftInput& in, int64_t length, int64_t channels, const AftState& state, real* y, int64_t y_stride) {
  simd::sweep_groups<aft_group_size>(channels, [&](auto group) {
    AftRecurrence<decltype(group)> recurrence(group, state);
    for (int64_t t = 0; t < length; ++t) {
      const int64_t row = t * in.stride;
      for (int i = 0; i < group.size; ++i) {
        const auto& at = group.places[i];
        recurrence.advance(i, at.load(in.k + row), at.load(in.v + row));
        at.store(y + t * y_stride, simd::sigmoid(at.load(in.q + row)) * recurrence.average(i));
      }
    }
    recurrence.store();
  });
}

void aft_gates(const AftInput& in, int64_t length, int64_t channels, const AftState& state, real* gate, real* average) {
  simd::sweep_groups<aft_group_size>(channels, [&](auto group) {
    AftRecurrence<decltype(group)> recurrence(group, state);
    for (int64_t t = 0; t < length; ++t) {
      const int64_t row = t * in.stride, kept = t * channels;
      for (int i = 0; i < group.size; ++i) {
        const auto& at = group.places[i];
        at.store(gate + kept, recurrence.advance(i, at.load(in.k + row), at.load(in.v + row)));
        at.store(average + kept, recurrence.average(i));
      }
    }
    recurrence.store();
  });
}

void aft_scan_backward(const AftInput& in, int64_t length, int64_t channels, const real* dy, int64_t dy_stride,
                       const real* gate, const real* average, const AftReverse& reverse, const AftGradient& out) {
  simd::sweep_groups<aft_group_size>(channels, [&](auto group) {
    constexpr int size = decltype(group)::size;
    const Batch one(1);
    Batch b[size], c[size];  // B and C of the formulas in scan.hpp, times 1 - g of the token after
    for (int i = 0; i < size; ++i) {
      b[i] = group.places[i].load(reverse.b);
      c[i] = group.places[i].load(reverse.c);
    }
    for (int64_t t = length - 1; t >= 0; --t) {
      const int64_t row = t * in.stride, kept = t * channels, out_row = t * out.stride;
      for (int i = 0; i < size; ++i) {
        const auto& at = group.places[i];
        const Batch g = at.load(gate + kept), r = at.load(average + kept), v = at.load(in.v + row);
        const Batch open = simd::sigmoid(at.load(in.q + row)), h = at.load(dy + t * dy_stride) * open;
        at.store(out.q + out_row, h * r * (one - open));
        b[i] = h + b[i];
        c[i] = h * r + c[i];
        at.store(out.v + out_row, g * b[i]);
        at.store(out.k + out_row, g * (v * b[i] - c[i]));
        b[i] = (one - g) * b[i];
        c[i] = (one - g) * c[i];
      }
    }
    for (int i = 0; i < size; ++i) {
      group.places[i].store(reverse.b, b[i]);
      group.places[i].store(reverse.c, c[i]);
    }
  });
}

void aft_pool(const AftInput& in, int64_t length, int64_t channels, real* logsum, real* average) {
  simd::sweep(channels, [&](auto at) {
    Batch m(std::numeric_limits<real>::lowest());
    for (int64_t t = 0; t < length; ++t) m = xsimd::max(m, at.load(in.k + t * in.stride));
    Batch weight(0), sum(0);
    for (int64_t t = 0; t < length; ++t) {
      const Batch e = simd::exp(at.load(in.k + t * in.stride) - m);
      weight = weight + e;
      sum = sum + e * at.load(in.v + t * in.stride);
    }
    at.store(logsum, m + simd::log(weight));
    at.store(average, sum / weight);
  });
}

void aft_pool_apply(const AftInput& in, int64_t length, int64_t channels, const real* average, real* y,
                    int64_t y_stride) {
  for (int64_t t = 0; t < length; ++t)
    simd::sweep(channels, [&](auto at) {
      at.store(y + t * y_stride, simd::sigmoid(at.load(in.q + t * in.stride)) * at.load(average));
    });
}

void aft_pool_backward(const AftInput& in, int64_t length, int64_t channels, const real* dy, int64_t y_stride,
                       const real* logsum, const real* average, const AftGradient& out) {
  simd::sweep(channels, [&](auto at) {
    const Batch r = at.load(average), lse = at.load(logsum), one(1);
    Batch total(0);
    for (int64_t t = 0; t < length; ++t) {
      const Batch open = simd::sigmoid(at.load(in.q + t * in.stride)), h = at.load(dy + t * y_stride) * open;
      at.store(out.q + t * out.stride, h * r * (one - open));
      total = total + h;
    }
    for (int64_t t = 0; t < length; ++t) {
      const Batch p = simd::exp(at.load(in.k + t * in.stride) - lse) * total;
      at.store(out.v + t * out.stride, p);
      at.store(out.k + t * out.stride, p * (at.load(in.v + t * in.stride) - r));
    }
  });
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
