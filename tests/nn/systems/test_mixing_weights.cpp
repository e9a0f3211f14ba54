// The weights that a mixer shows are those it mixes with: a plain sum with them gives what forward gives.
#include <doctest/doctest.h>

#include <cmath>

#include "core/ops/linear.hpp"
#include "tests/nn/mixer/mixer_suite.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace testing {
namespace {

struct Part {
  int64_t begin, width;
};

/// Columns of a packed projection.
Array columns(const Array& packed, const Part& part) {
  const int64_t stride = packed.dim(packed.rank() - 1), rows = packed.size() / stride;
  Array out(Shape{packed.dim(0), packed.dim(1), part.width});
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(packed.data() + row * stride + part.begin, part.width, out.mutable_data() + row * part.width);
  return out;
}

/// y_tc = sum_s weights[b, h(c), t, s] values[b, s, c].
Array mixed(const Array& weights, const Array& values) {
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
Array product(const Array& a, const Array& b) {
  return combined(a, b, [](real x, real y) { return x * y; });
}
real sigmoid(real x) { return 1 / (1 + std::exp(-x)); }
real silu(real x) { return x * sigmoid(x); }

/// A mixer without biases of its layers, with the inputs it is looked at on.
struct Subject {
  Subject(const MixerConfig& config, bool causal, const Segments& on)
      : built(built_mixer(config, causal, on.length())),
        segments(on),
        x(normal_array({on.batch(), on.length(), width}, 3)) {
    context.segments = segments;
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
    const double error = relative_error(output, forward(*built.module, x, segments), 1);
    CHECK_MESSAGE(error <= layer_tolerance, name, ": ", error);
  }

  Built<Mixer> built;
  Segments segments;
  Context context;
  Array x;
};

void check_attention(const AttentionConfig& config, bool causal) {
  const Subject s(config, causal, ragged_segments(40));
  const Array values = columns(s.layer("to_qkv", s.x), {2 * width, width});
  s.check(s.layer("to_out", mixed(s.weights(0), values)), "attention");
}

/// gau, and flash without its global part.
void check_gated(const MixerConfig& config, int64_t hidden, bool causal) {
  const Subject s(config, causal, ragged_segments(40));
  const Array packed = s.layer("to_uvz", s.x);
  const auto activated = [&](const Part& part) {
    const Array raw = columns(packed, part);
    return combined(raw, raw, [](real a, real) { return silu(a); });
  };
  const Array gate = activated({0, hidden}), values = activated({hidden, hidden});
  s.check(s.layer("to_out", product(gate, mixed(s.weights(0), values))), mixer_name(config));
}

void check_fastformer(const FastformerConfig& config, bool causal) {
  const Subject s(config, causal, ragged_segments(40));
  const Array qk = s.layer("to_qk", s.x), q = columns(qk, {0, width}), k = columns(qk, {width, width});
  const Array p = product(mixed(s.weights(0), q), k), u = product(mixed(s.weights(1), p), q);
  Array y = combined(s.layer("to_r", u), q, [](real a, real b) { return a + b; });
  for (int64_t i = 0; i < y.size(); ++i)
    if (s.segments.ids()[i / width] == 0) y.mutable_data()[i] = 0;
  s.check(s.layer("to_out", y), "fastformer");
}

/// sigmoid(Q_t) sum_s e^(K_s + w_ts) V_s / sum_s e^(K_s + w_ts) over the sources that t sees.
void check_aft(const MixerConfig& config, bool causal) {
  const int64_t length = 29;
  const Subject s(config, causal, Segments::full(1, length));
  const Array bias = s.built.module->position_bias(length), qkv = s.layer("to_qkv", s.x);
  const int64_t stride = qkv.dim(2), keys = stride - 2 * width, heads = bias.dim(0);
  REQUIRE(bias.shape() == Shape{heads, length, length});
  Array y(s.x.shape());
  for (int64_t t = 0; t < length; ++t) {
    for (int64_t c = 0; c < width; ++c) {
      real above = 0, below = 0;
      for (int64_t source = 0; source < (causal ? t + 1 : length); ++source) {
        const real* const row = qkv.data() + source * stride;
        const real e =
            std::exp(row[width + c * keys / width] + bias[((c * heads / width) * length + t) * length + source]);
        above += e * row[width + keys + c];
        below += e;
      }
      y.mutable_data()[t * width + c] = sigmoid(qkv[t * stride + c]) * above / below;
    }
  }
  s.check(s.layer("to_out", y), mixer_name(config));
}

TEST_CASE("position biases are those that aft mixes with") {
  for (const bool causal : {true, false}) {
    for (const PositionBias kind : {PositionBias::factorised, PositionBias::dense}) {
      AftFullConfig full;
      full.position_bias = kind;
      check_aft(full, causal);
      AftLocalConfig local;
      local.position_bias = kind;
      local.window = 5;
      check_aft(local, causal);
    }
    AftConvConfig conv;
    conv.window = 6;
    conv.heads = 5;
    check_aft(conv, causal);
  }
}

TEST_CASE("mixing weights are those that attention, gau, flash and fastformer mix with") {
  for (const bool causal : {true, false}) {
    for (const bool turned : {true, false}) {
      AttentionConfig attention;
      attention.heads = 5;
      if (turned) attention.rotary = {true, 4, 100, RotaryPairs::halves};
      check_attention(attention, causal);
      GauConfig gau;
      gau.rotary.enabled = turned;
      gau.key_dim = 10;
      check_gated(gau, 2 * width, causal);
      FlashConfig flash;
      flash.rotary.enabled = turned;
      flash.key_dim = 10;
      flash.chunk = 13;
      flash.global = false;
      check_gated(flash, 2 * width, causal);
    }
    FastformerConfig fastformer;
    fastformer.heads = 5;
    for (const auto& logits : enum_names(FastformerLogits{})) {
      fastformer.logits = logits.value;
      check_fastformer(fastformer, causal);
    }
  }
}

TEST_CASE("a mixer without such matrices has none to show") {
  const Subject simple(AftSimpleConfig{}, true, Segments::full(1, 4));
  CHECK(simple.built.module->position_bias(4).empty());
  CHECK(simple.built.module->mixing_weights(Var(simple.x), simple.context).empty());
  const Subject attention(AttentionConfig{5}, true, Segments::full(1, 4));
  CHECK(attention.built.module->position_bias(4).empty());
  FlashConfig global_only;
  global_only.local = false;
  const Subject flash(global_only, true, Segments::full(1, 4));
  CHECK(flash.built.module->mixing_weights(Var(flash.x), flash.context).empty());
}

}  // namespace
}  // namespace testing
}  // namespace capstan::CAPSTAN_PRECISION
