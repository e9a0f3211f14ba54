#include "tests/nn/mixer/mixing_weights.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

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

TEST_CASE("aft-simple has neither a position bias nor mixing weights to show") {
  const Subject simple(AftSimpleConfig{}, true, Segments::full(1, 4));
  CHECK(simple.built.module->position_bias(4).empty());
  CHECK(simple.built.module->mixing_weights(Var(simple.x), simple.context).empty());
}

TEST_CASE("aft-conv refuses a width that its heads do not divide") {
  ParamStore store;
  CHECK_THROWS_WITH_AS(make_mixer(Scope(store, 1), {9, 16, true, 1}, AftConvConfig{}),
                       "aft: width 9 is not a multiple of 4 heads", std::invalid_argument);
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
