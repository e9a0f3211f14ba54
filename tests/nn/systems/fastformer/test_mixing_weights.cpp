#include "tests/nn/mixer/mixing_weights.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

void check_pools(const FastformerConfig& config, bool causal) {
  const Subject s(config, causal, ragged_segments(40));
  const Array qk = s.layer("to_qk", s.x), q = columns(qk, {0, width}), k = columns(qk, {width, width});
  const Array p = product(mixed(s.weights(0), q), k), u = product(mixed(s.weights(1), p), q);
  Array y = combined(s.layer("to_r", u), q, [](real a, real b) { return a + b; });
  for (int64_t i = 0; i < y.size(); ++i)
    if (s.segments.ids()[i / width] == 0) y.mutable_data()[i] = 0;
  s.check(s.layer("to_out", y), "fastformer");
}

TEST_CASE("the mixing weights of fastformer are those of its two pools") {
  for (const bool causal : {true, false}) {
    FastformerConfig config;
    config.heads = 5;
    for (const auto& logits : enum_names(FastformerLogits{})) {
      config.logits = logits.value;
      check_pools(config, causal);
    }
  }
}

TEST_CASE(
    "in prefixes the pools of fastformer are those of the bidirectional mixer, after them those of the causal one") {
  FastformerConfig config;
  config.heads = 5;
  const Segments segments = ragged_segments(40);
  const Subject prefixed(config, true, segments, true), causal(config, true, segments),
      whole(config, false, halves_of(segments));
  for (const size_t pool : {0, 1}) {
    const Array got = prefixed.weights(pool), later = causal.weights(pool), within = whole.weights(pool);
    for (int64_t i = 0; i < got.size(); ++i) {
      const int64_t row = i / (40 * 40 * config.heads), token = i / 40 % 40;
      const bool in_prefix = prefixed.context.prefixes.ids()[row * 40 + token] != 0;
      REQUIRE(got[i] == doctest::Approx(in_prefix ? within[i] : later[i]).epsilon(1e-5));
    }
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
