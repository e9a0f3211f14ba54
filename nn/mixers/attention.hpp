// Multi-head attention, the Transformer's mixer. Vaswani et al. 2017, arXiv 1706.03762.
#pragma once

#include "core/ops_rotary.hpp"
#include "core/schema.hpp"
#include "nn/layers.hpp"
#include "nn/mixer.hpp"

namespace capstan {

/// Every token takes a weighted mean of the values it may see, weighted by how well its query agrees with their keys.
/// O(T^2 D) time, O(T D) memory and decode state.
struct AttentionConfig {
  static constexpr const char* type_name = "attention";
  int64_t heads = 4;
  bool rotary = false;
  int64_t rotary_dims = 0;
  double rotary_base = 10000;
  RotaryPairs rotary_pairs = RotaryPairs::halves;
  bool bias = false;      // biases of query, value and output projection
  bool key_bias = false;  // without rotary positions a gauge parameter: it cancels in the softmax
  bool output_projection = true;

  RotaryOptions rotary_options() const { return {rotary_base, rotary_dims, rotary_pairs}; }
};

template <class Fields>
void describe(Fields& f, AttentionConfig& c) {
  f("heads", c.heads, at_least(1), "searches side by side, each in width / heads features; divides the width");
  f("rotary", c.rotary, any(),
    "turn queries and keys by their positions, so that attention knows distances at any length (else give the model "
    "positions)");
  f("rotary_dims", c.rotary_dims, at_least(0), "features of each head that turn, an even number; 0: all of them");
  f("rotary_base", c.rotary_base, greater(0),
    "larger: slower turns, which tell larger distances apart (pair i of n turns by base^(-i/n) per position)");
  f("rotary_pairs", c.rotary_pairs, any(),
    "features that turn together: halves (i, i + n; most public weights) or interleaved (2i, 2i + 1; the paper)");
  f("bias", c.bias, any(), "biases of query, value and output projection");
  f("key_bias", c.key_bias, any(),
    "bias of the key: changes nothing without rotary (it cancels), for published weights only");
  f("output_projection", c.output_projection, any(), "a linear map behind the mixer");
}

}  // namespace capstan

CAPSTAN_BEGIN

/// Softmax attention with scale 1 / sqrt(D / H).  Parameters to_qkv.weight (3D, D), query_bias, key_bias, value_bias
/// (D), to_out.
class MultiHeadAttention final : public Mixer {
 public:
  MultiHeadAttention(const Scope& scope, const MixerShape& shape, const AttentionConfig& config);

  Var forward(const Var& x, const Context& context) const override;
  std::unique_ptr<MixerState> make_state(int64_t batch) const override;
  Var prefill(const Var& x, MixerState& state) const override;
  Var step(const Var& x, MixerState& state) const override;
  MixerCost cost(int64_t length) const override;

 private:
  double scale() const;
  /// x: (B, T, D) -> q|k|v (B, T, 3D), queries and keys turned by `positions`.
  Var project(const Var& x, const Ids& positions) const;
  Var mix(const Var& qkv, const Segments& segments) const;
  Var output(const Var& y) const { return to_out_ ? (*to_out_)(y) : y; }

  MixerShape shape_;
  AttentionConfig config_;
  Var qkv_weight_, query_bias_, key_bias_, value_bias_;
  std::unique_ptr<Linear> to_out_;
};

CAPSTAN_END
