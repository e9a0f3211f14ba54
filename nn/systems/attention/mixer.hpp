// Multi-head attention, the Transformer's mixer, by its configuration. Vaswani et al. 2017, arXiv 1706.03762. The op is
// nn/systems/quadratic/op.hpp; tests/nn/systems/attention/ and tests/models/test_decode.cpp hold what it does.
#pragma once

#include "core/config/schema.hpp"
#include "nn/layers/layers.hpp"
#include "nn/layers/rotary_config.hpp"
#include "nn/mixer/mixer.hpp"
#include "nn/mixer/model_shape.hpp"
#include "nn/systems/quadratic/op.hpp"

namespace capstan {

/// Each token gets the mean of the values it may see, weighted by how well its query matches their keys.
/// O(T^2 D) time, O(T D) memory and decode state.
struct AttentionConfig {
  static constexpr const char* type_name = "attention";
  int64_t heads = 4;
  RotaryConfig rotary = {/*enabled=*/false};
  bool bias = false;  // biases of query, value and output projection
  bool output_projection = true;

  bool has_position_limit() const { return false; }
  std::string prefix_obstacle() const { return ""; }
};

template <class Fields>
void describe(Fields& f, AttentionConfig& c) {
  f("heads", c.heads, width_from(1), "number of heads; must divide the width");
  describe_rotary(f, c.rotary);
  f("bias", c.bias, any(), "biases of the projections (in aft and attention not of the key)");
  f("output_projection", c.output_projection, any(), "a linear map after the mixer");
}
inline void validate(const AttentionConfig& c, const ModelShape& model, Problems& problems) {
  check_heads(c.heads, model, problems);
  if (c.heads >= 1 && model.width % c.heads == 0) check_rotary(c.rotary, model.width / c.heads, problems);
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const AttentionConfig& config);

}  // namespace capstan::CAPSTAN_PRECISION
