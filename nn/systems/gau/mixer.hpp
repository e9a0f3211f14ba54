// The gated attention unit with attention over all tokens (FLASH-Quad). Hua et al. 2022, arXiv 2202.10447.
#pragma once

#include "nn/systems/gated/unit.hpp"

namespace capstan {

/// out = (u * (A v)) W_o with u, v and z from one projection, q and k two scaled and shifted views of z. O(T^2 (Z + E))
/// time, O(T (Z + E)) memory and decode state.
struct GauConfig : GatedUnitConfig {
  static constexpr const char* type_name = "gau";
  int64_t paper_length = 512;

  bool has_position_limit() const { return position_bias == RelativeBiasKind::toeplitz; }
  std::string prefix_obstacle() const { return bias_obstacle(); }
};

template <class Fields>
void describe(Fields& f, GauConfig& c) {
  describe_unit(f, c);
  describe_compat(f, [&](auto& g) {
    describe_unit_compat(g, c);
    g("paper_length", c.paper_length, length_from(1),
      "the constant n that normaliser: paper uses, whatever the length of the text");
  });
}
inline void validate(const GauConfig& c, const ModelShape& model, Problems& problems) {
  validate(static_cast<const GatedUnitConfig&>(c), model, problems);
  if (c.normaliser == Normaliser::chunk) problems.add("normaliser", "chunk is for flash: gau has no chunks");
  if (c.normaliser == Normaliser::document)
    problems.add("normaliser", "document is for flash: a token of gau sees its whole document, so take counted");
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// Parameters as GatedUnit names them; a Toeplitz bias knows max_length positions. Rows of gain and offset: query, key.
class Gau final : public Mixer {
 public:
  Gau(const Scope& scope, const MixerShape& shape, const GauConfig& config);

  Var forward(const Var& x, const Context& context) const override;
  std::unique_ptr<MixerState> make_state(int64_t batch) const override;
  Var prefill(const Var& x, MixerState& state) const override;
  Var step(const Var& x, MixerState& state) const override;
  MixerCost cost(int64_t length) const override;
  std::vector<MixingWeights> mixing_weights(const Var& x, const Context& context) const override;

 private:
  Var attend(const GatedUnit::Parts& parts, const Segments& segments, const Context& context, bool causal) const;
  /// Lets the bias of a decode state serve `tokens` tokens. Throws std::invalid_argument past a Toeplitz bias.
  void prepare_bias(Array& bias, int64_t tokens) const;

  MixerShape shape_;
  GauConfig config_;
  GatedUnit unit_;
};

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const GauConfig& config);

}  // namespace capstan::CAPSTAN_PRECISION
