// The gated attention unit with attention over all tokens (FLASH-Quad). Hua et al. 2022, arXiv 2202.10447.
#pragma once

#include <optional>

#include "core/ops_rotary.hpp"
#include "core/schema.hpp"
#include "nn/gated_kernel.hpp"
#include "nn/layers.hpp"
#include "nn/mixer.hpp"
#include "nn/relative_bias.hpp"

namespace capstan {

/// How a gated unit starts. With `paper` all matrices, biases of position and gains are N(0, 0.02): queries and keys
/// are next to nothing, so that layers pass their input through and need many steps to wake up; meant for large models.
/// `lecun` keeps activations of size one: matrices N(0, 1 / in), gains 1.
enum class GatedInit { lecun, paper };

inline std::vector<EnumName<GatedInit>> enum_names(GatedInit) {
  return {{GatedInit::lecun, "lecun"}, {GatedInit::paper, "paper"}};
}

/// Rotary positions of queries and keys.
struct GatedRotaryConfig {
  bool enabled = true;
  int64_t dims = 0;
  double base = 10000;
  RotaryPairs pairs = RotaryPairs::halves;
  RotaryOptions options() const { return {base, dims, pairs}; }
};

template <class Fields>
void describe(Fields& f, GatedRotaryConfig& c) {
  f("enabled", c.enabled, any(), "turn queries and keys by their positions");
  f("dims", c.dims, at_least(0), "features that turn, an even number; 0: all of them (FLASH-pytorch: 32)");
  f("base", c.base, greater(0), "pair i of n turns by base^(-i/n) per position");
  f("pairs", c.pairs, any(), "features that turn together: halves (i, i + n) or interleaved (2i, 2i + 1)");
}

/// out = (u * (A v)) W_o with u, v and z from one projection, q and k two scaled and shifted views of z. O(T^2 (Z + E))
/// time, O(T (Z + E)) memory and decode state.
struct GauConfig : GatedKernelConfig {
  static constexpr const char* type_name = "gau";
  double expansion = 2;
  int64_t key_dim = 128;
  int64_t paper_length = 512;
  GatedRotaryConfig rotary;
  RelativeBiasKind position_bias = RelativeBiasKind::rotary;
  double t5_scale = 0;
  bool bias = false;
  GatedInit init = GatedInit::lecun;
};

template <class Fields>
void describe(Fields& f, GauConfig& c) {
  f("expansion", c.expansion, greater(0), "width of gate and values over the model's width (E / D)");
  f("key_dim", c.key_dim, at_least(1), "width of queries and keys (s in the paper)");
  describe_kernel(f, c);
  f("paper_length", c.paper_length, at_least(1), "n of the normaliser paper, at any length of the text");
  f("rotary", c.rotary, any(), "rotary positions of queries and keys");
  f("position_bias", c.position_bias, any(),
    "b, of the distance: none, toeplitz (a table up to max_length), rotary (any length) or t5 (32 buckets, any "
    "length)");
  f("t5_scale", c.t5_scale, at_least(0),
    "factor of the t5 buckets; 0: sqrt(key_dim) (FLASH-pytorch's GAU: sqrt(width))");
  f("bias", c.bias, any(), "biases of both projections");
  f("init", c.init, any(),
    "lecun (activations of size one) or paper (N(0, 0.02) everywhere: near the identity, slow to start)");
}

}  // namespace capstan

CAPSTAN_BEGIN

/// Parameters to_uvz.weight (2E + Z, D) and .bias, gain and offset (2, Z) of query and key, to_out.weight (D, E) and
/// .bias; relative_bias.table (2 max_length - 1), relative_bias.a and .c (Z), or relative_bias.buckets (32).
class Gau final : public Mixer {
 public:
  Gau(const Scope& scope, const MixerShape& shape, const GauConfig& config);

  Var forward(const Var& x, const Context& context) const override;
  std::unique_ptr<MixerState> make_state(int64_t batch) const override;
  Var prefill(const Var& x, MixerState& state) const override;
  Var step(const Var& x, MixerState& state) const override;
  MixerCost cost(int64_t length) const override;

 private:
  struct Parts {
    Var gate, value, query, key;  // (B, T, E) twice, (B, T, Z) twice
  };
  Parts project(const Var& x, const Ids& positions) const;
  Var attend(const Parts& parts, const Segments& segments) const;
  Var output(const Var& gate, const Var& attended) const;
  /// (1, 2 length - 1), scaled for the kernel; undefined without position bias.
  Var scaled_bias(int64_t length) const;
  /// Lets a decode state hold `tokens` tokens. Throws std::invalid_argument past the positions of a Toeplitz bias.
  void make_room(MixerState& state, int64_t tokens) const;

  MixerShape shape_;
  GauConfig config_;
  GatedKernelShape kernel_shape_;
  int64_t hidden_;  // E
  Var weight_, bias_, gain_, offset_;
  std::unique_ptr<Linear> to_out_;
  RelativeBias relative_bias_;
};

CAPSTAN_END
