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

/// Additive attention: tokens are pooled into one query, and its products with the keys into one key.
/// O(T D) time, O(D) decode state.
struct FastformerConfig {
  static constexpr const char* type_name = "fastformer";
  int64_t heads = 4;
  bool bias = false;
  bool output_projection = true;

  bool has_position_limit() const { return false; }
  std::string prefix_obstacle() const { return ""; }
};

template <class Fields>
void describe(Fields& f, FastformerConfig& c) {
  f("heads", c.heads, width_from(1), "number of heads; must divide the width");
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
