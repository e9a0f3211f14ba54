// The weights that a mixer shows are those it mixes with: a plain sum with them gives what forward gives.
#pragma once

#include <doctest/doctest.h>

#include <cmath>

#include "core/fused/linear.hpp"
#include "tests/nn/mixer/mixer_suite.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

struct Part {
  int64_t begin, width;
};

/// Columns of a packed projection.
inline Array columns(const Array& packed, const Part& part) {
  const int64_t stride = packed.dim(packed.rank() - 1), rows = packed.size() / stride;
  Array out(Shape{packed.dim(0), packed.dim(1), part.width});
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(packed.data() + row * stride + part.begin, part.width, out.mutable_data() + row * part.width);
  return out;
}

/// y_tc = sum_s weights[b, h(c), t, s] values[b, s, c].
inline Array mixed(const Array& weights, const Array& values) {
  const int64_t batch = values.dim(0), length = values.dim(1), features = values.dim(2), heads = weights.dim(1);
  Array out = Array::zeros(values.shape());
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t t = 0; t < length; ++t)
      for (int64_t s = 0; s < length; ++s)
        for (int64_t c = 0; c < features; ++c)
          out.mutable_data()[(b * length + t) * features + c] +=
              weights[((b * heads + c * heads / features) * length + t) * length + s] *
              values[(b * length + s) * features + c];
  return out;
}

template <class Combine>
Array combined(const Array& a, const Array& b, const Combine& combine) {
  Array out(a.shape());
  for (int64_t i = 0; i < a.size(); ++i) out.mutable_data()[i] = combine(a[i], b[i]);
  return out;
}
inline Array product(const Array& a, const Array& b) {
  return combined(a, b, [](real x, real y) { return x * y; });
}
inline real sigmoid(real x) { return 1 / (1 + std::exp(-x)); }
inline real silu(real x) { return x * sigmoid(x); }

/// The first half of every document.
inline Segments halves_of(const Segments& segments) {
  Ids ids = Ids::zeros(segments.ids().shape());
  for (const auto& span : segments.spans()) {
    const int64_t begin = span.row * segments.length() + span.begin;
    std::fill_n(ids.mutable_data() + begin, (span.length() + 1) / 2, segments.ids()[begin]);
  }
  return Segments(ids);
}

/// A mixer without biases of its layers, with the inputs it is looked at on; with `prefixes`, half of every document is
/// read as a whole.
struct Subject {
  Subject(const MixerConfig& config, bool causal, const Segments& on, bool prefixes = false)
      : built(built_mixer(config, causal, on.length())),
        segments(on),
        x(normal_array({on.batch(), on.length(), width}, 3)) {
    context.segments = segments;
    if (prefixes) context.prefixes = halves_of(segments);
  }
  Array layer(const std::string& name, const Array& input) const {
    return linear(Var(input), built.store->find(name + ".weight").var).value();
  }
  Array weights(size_t index) const {
    const std::vector<MixingWeights> all = built.module->mixing_weights(Var(x), context);
    REQUIRE(all.size() > index);
    return all[index].values;
  }
  void check(const Array& output, const std::string& name) const {
    const double error = relative_error(output, built.module->forward(Var(x), context).value(), 1);
    CHECK_MESSAGE(error <= layer_tolerance, name, ": ", error);
  }

  Built<Mixer> built;
  Segments segments;
  Context context;
  Array x;
};

}  // namespace capstan::CAPSTAN_PRECISION::testing
