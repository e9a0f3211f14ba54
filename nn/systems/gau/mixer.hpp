// The gated attention unit with attention over all tokens (FLASH-Quad), by its configuration. Hua et al. 2022, arXiv
// 2202.10447. The unit is nn/systems/gated/unit.hpp, the attention nn/systems/quadratic/op.hpp; tests/nn/systems/gau/.
#pragma once

#include "nn/mixer/model_shape.hpp"
#include "nn/systems/gated/unit.hpp"

namespace capstan {

/// out = (u * (A v)) W_o with u, v and z from one projection, q and k two scaled and shifted views of z. O(T^2 (Z + E))
/// time, O(T (Z + E)) memory and decode state.
struct GauConfig : GatedUnitConfig {
  static constexpr const char* type_name = "gau";
  int64_t paper_length = 512;

  bool has_position_limit() const { return position_bias == RelativeBiasKind::toeplitz; }
  std::string prefix_obstacle() const { return ""; }
};

template <class Fields>
void describe(Fields& f, GauConfig& c) {
  describe_unit(f, c);
  f("paper_length", c.paper_length, length_from(1),
    "the constant n that normaliser: paper uses, whatever the length of the text");
}
inline void validate(const GauConfig& c, const ModelShape& model, Problems& problems) {
  validate(static_cast<const GatedUnitConfig&>(c), model, problems);
  if (c.normaliser == Normaliser::document)
    problems.add("normaliser", "document is for flash: a token of gau sees its whole document, so take counted");
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const GauConfig& config);

}  // namespace capstan::CAPSTAN_PRECISION
