// Fastformer's mixer, by its configuration. Wu et al. 2021, arXiv 2108.09084. nn/systems/fastformer/README.md says
// where the paper and the authors' code differ; tests/nn/systems/fastformer/test_mixer.cpp has a test for each such
// point.
#pragma once

#include "core/config/schema.hpp"
#include "nn/layers/layers.hpp"
#include "nn/mixer/mixer.hpp"
#include "nn/mixer/model_shape.hpp"
#include "nn/systems/fastformer/op.hpp"

namespace capstan {

/// What a head's logits read: every feature of the token (the authors' code), or the head's own (the paper).
enum class FastformerLogits { all_features, per_head };

inline std::vector<EnumName<FastformerLogits>> enum_names(FastformerLogits) {
  return {{FastformerLogits::all_features, "all-features"}, {FastformerLogits::per_head, "per-head"}};
}

/// The values that the pooled key is multiplied by: the queries (the authors' code), or a projection of their own (the
/// paper's equation 6).
enum class FastformerValue { shared, own };

inline std::vector<EnumName<FastformerValue>> enum_names(FastformerValue) {
  return {{FastformerValue::shared, "shared"}, {FastformerValue::own, "own"}};
}

/// Additive attention: tokens are pooled into one query, and its products with the keys into one key.
/// O(T D) time, O(D) decode state.
struct FastformerConfig {
  static constexpr const char* type_name = "fastformer";
  int64_t heads = 4;
  FastformerLogits logits = FastformerLogits::all_features;
  bool bias = false;
  bool output_projection = true;
  FastformerValue value = FastformerValue::shared;

  bool has_position_limit() const { return false; }
  std::string prefix_obstacle() const { return ""; }
};

template <class Fields>
void describe(Fields& f, FastformerConfig& c) {
  f("heads", c.heads, width_from(1), "number of heads; must divide the width");
  f("logits", c.logits, any(),
    "what the logits of a head read: all-features (the authors' code) or per-head (only its own; the paper)");
  f("value", c.value, any(), "shared = the queries (the authors' code), own = a projection of their own (the paper)");
  f("bias", c.bias, any(), "biases of the projections (in aft and attention not of the key)");
  f("output_projection", c.output_projection, any(), "a linear map after the mixer");
}
inline void validate(const FastformerConfig& c, const ModelShape& model, Problems& problems) {
  check_heads(c.heads, model, problems);
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const FastformerConfig& config);

}  // namespace capstan::CAPSTAN_PRECISION
