// What GAU and FLASH have in common: gates, values and shared features from one projection, scaled and shifted views of
// the features as queries and keys, the gate, the output projection. Hua et al. 2022, arXiv 2202.10447. The mixers of
// nn/systems/gau and flash hold one each.
#pragma once

#include <algorithm>

#include "core/config/schema.hpp"
#include "core/machine/parallel.hpp"
#include "nn/layers/layers.hpp"
#include "nn/layers/rotary_config.hpp"
#include "nn/mixer/mixer.hpp"
#include "nn/mixer/model_shape.hpp"
#include "nn/systems/gated/relative_bias.hpp"
#include "nn/systems/gated/weighting.hpp"

namespace capstan {

/// Activations start at size one: matrices N(0, 1 / in), gains 1 (of FLASH's global part less).
struct GatedUnitConfig : GatedKernelConfig {
  double expansion = 2;
  int64_t key_dim = 128;
  RotaryConfig rotary;
  RelativeBiasKind position_bias = RelativeBiasKind::rotary;
  bool bias = false;
};

template <class Fields>
void describe_unit(Fields& f, GatedUnitConfig& c) {
  f("expansion", c.expansion, greater_up_to(0, 1024),
    "width of gate and values as a multiple of the model's width (E / D)");
  f("key_dim", c.key_dim, width_from(1), "width of queries and keys (s in the paper)");
  describe_kernel(f, c);
  describe_rotary(f, c.rotary);
  f("position_bias", c.position_bias, any(),
    "position bias b: none, toeplitz (one value per distance, up to max_length or the chunk) or rotary");
  f("bias", c.bias, any(), "biases of the projections (in aft and attention not of the key)");
}
/// The rules of every mixer that is made of a gated unit.
inline void validate(const GatedUnitConfig& c, const ModelShape&, Problems& problems) {
  if (const char* const problem = kernel_problem(c)) problems.add("logits", problem);
  check_rotary(c.rotary, c.key_dim, problems);
  if (c.position_bias == RelativeBiasKind::rotary && c.key_dim % 2 != 0)
    problems.add("key_dim", "the position bias rotary needs an even number");
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// What a unit needs in addition to its configuration.
struct GatedUnitShape {
  std::vector<double> gains;   // of the shared features' views, 2 for each attention
  GatedKernelShape attention;  // the quadratic one
  int64_t positions;           // positions of a Toeplitz bias
};

/// Parameters: to_uvz.weight (2E + Z, D), gain (views, Z), to_out.weight (D, E);
/// relative_bias.table (2 positions - 1), or relative_bias.a and .c (Z), all N(0, 0.02^2);
/// to_uvz.bias, offset and to_out.bias, all 0.
class GatedUnit {
 public:
  /// Throws std::invalid_argument for a kernel that does not exist or rotary positions that do not fit.
  GatedUnit(const Scope& scope, const MixerShape& shape, const GatedUnitConfig& config, const GatedUnitShape& unit);

  struct Parts {
    Var gate, value;         // (B, T, E)
    std::vector<Var> views;  // (B, T, Z)
  };
  /// x: (B, T, D), positions: (B, T)
  Parts project(const Var& x, const Ids& positions) const;
  /// (gate * mixed) W_o.
  Var output(const Var& gate, const Var& mixed) const;

  /// project() for the next token of B sequences, at `positions` (B).
  struct StepParts {
    Array uvz;    // (B, 2E + Z): gate, value, shared features
    Array views;  // (views, B, Z)
    int64_t hidden;

    const real* gate(int64_t sequence) const { return uvz.data() + sequence * uvz.dim(1); }
    const real* value(int64_t sequence) const { return gate(sequence) + hidden; }
    const real* view(int64_t index, int64_t sequence) const {
      return views.data() + (index * views.dim(1) + sequence) * views.dim(2);
    }
  };
  /// x: (B, D)
  StepParts step_project(const Array& x, const Ids& positions, DecodeContext& decode) const;
  /// gated: (B, E) -> (B, D)
  Array step_output(const Array& gated, DecodeContext& decode) const { return to_out_->step(gated, decode); }

  /// b for `length` positions, (1, 2 length - 1); undefined without position bias.
  Var bias(int64_t length) const { return relative_bias_.for_length(length); }
  /// `segments`: the context's, or those of its prefixes. `past`: tokens in front of the first of each document.
  AttentionOptions attention_options(const Segments& segments, bool causal, int64_t past = 0) const;
  /// For queries with `count` keys.
  KernelScales scales(int64_t count) const {
    return kernel_scales(config_, shape_.attention, static_cast<double>(count));
  }
  int64_t hidden() const { return hidden_; }
  /// Are the projections in bf16?
  bool in_bf16() const { return !weight_.bf16().empty(); }

 private:
  GatedUnitConfig config_;
  GatedUnitShape shape_;
  int64_t width_, hidden_;  // D, E
  Var weight_, bias_, gain_, offset_;
  std::unique_ptr<Linear> to_out_;
  RelativeBias relative_bias_;
};

/// body(sequence, begin, end) for pieces [begin, end) of the columns of each sequence's value, which has E of them: one
/// sequence alone is work for several threads. `work`: multiply-adds per sequence.
template <class Body>
void for_value_columns(int64_t batch, int64_t hidden, int64_t work, const Body& body) {
  constexpr int64_t granule = 32, piece_work = 16384;
  const int64_t blocks = (hidden + granule - 1) / granule;
  const int64_t grain = piece_work * blocks / std::max<int64_t>(1, work);
  parallel_for(batch * blocks, std::max<int64_t>(1, grain), [&](int64_t unit, int64_t last) {
    while (unit < last) {
      const int64_t block = unit % blocks, count = std::min(blocks - block, last - unit);
      body(unit / blocks, block * granule, std::min((block + count) * granule, hidden));
      unit += count;
    }
  });
}

}  // namespace capstan::CAPSTAN_PRECISION
