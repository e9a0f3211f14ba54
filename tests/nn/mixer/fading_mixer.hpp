// A mixer of which only forward() is written, for tests: not one of the library.
#pragma once

#include "core/ops/ops.hpp"
#include "nn/layers/layers.hpp"
#include "nn/mixer/forward_mixer.hpp"
#include "nn/mixer/mixer.hpp"
#include "nn/mixer/prefixes.hpp"
#include "nn/systems/register_mixer.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// y_t = W sum over the tokens s that t sees of x_s 0.7^|t - s|.
struct FadingConfig {
  static constexpr const char* type_name = "test-fading";
  int64_t longest = 0;  // > 0: it refuses longer documents, as a mixer with parameters per position does
  bool has_position_limit() const { return longest > 0; }
  std::string prefix_obstacle() const { return ""; }
};

template <class Fields>
void describe(Fields& f, FadingConfig& c) {
  f("longest", c.longest, at_least(0), "tokens");
}

inline Array fading_weights(const Segments& segments, bool causal) {
  const int64_t length = segments.length();
  Array weights = Array::zeros({segments.batch(), length, length});
  for (const Segments::Span& span : segments.spans())
    for (int64_t t = span.begin; t < span.end; ++t) {
      real* const row = weights.mutable_data() + (span.row * length + t) * length;
      real weight = 1;
      for (int64_t s = t; s >= span.begin; --s, weight *= real{0.7F}) row[s] = weight;
      weight = real{0.7F};
      for (int64_t s = t + 1; s < span.end && !causal; ++s, weight *= real{0.7F}) row[s] = weight;
    }
  return weights;
}

class Fading final : public ForwardMixer {
 public:
  Fading(const Scope& scope, const MixerShape& shape, const FadingConfig& config)
      : ForwardMixer(FadingConfig::type_name, shape),
        limited_(config.longest > 0),
        to_out_(scope / "to_out", {shape.width, shape.width, /*bias=*/true}) {}

  Var forward(const Var& x, const Context& context) const override {
    check(x.rank() == 3 && x.dim(2) == shape().width && x.dim(0) == context.segments.batch() &&
              x.dim(1) == context.segments.length(),
          "test-fading: x is {}", x.shape());
    check(!limited_ || context.segments.longest() <= shape().max_length, "test-fading: too long");
    return to_out_(mix_with_prefix(context, shape().causal, [&](const Segments& segments, bool causal) {
      return matmul(Var(fading_weights(segments, causal)), x);
    }));
  }

 private:
  bool limited_;
  Linear to_out_;
};

inline std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const FadingConfig& config) {
  return std::make_unique<Fading>(scope, shape, config);
}

}  // namespace capstan::CAPSTAN_PRECISION
