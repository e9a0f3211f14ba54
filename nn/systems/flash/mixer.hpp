// FLASH's mixed chunk attention: a gated attention unit that is quadratic inside chunks and linear across them.
// Hua et al. 2022, arXiv 2202.10447.
#pragma once

#include <algorithm>

#include "nn/systems/flash/chunk_linear.hpp"
#include "nn/systems/gated/unit.hpp"

namespace capstan {

/// O(T (C (Z + E) + Z E)) time, O(Z E + C (2Z + E)) decode state. What the parts are divided by, local and global:
///   counted  the tokens of its chunk that a query sees; those that it sees in M;
///   paper    C; C times the number of chunks in M;
///   chunk    C; causal C, bidirectional the number of tokens in M;
///   document the tokens of its document, causal up to the query itself; those that it sees in M.
struct FlashConfig : GatedUnitConfig {
  static constexpr const char* type_name = "flash";
  FlashConfig() { position_bias = RelativeBiasKind::toeplitz; }
  int64_t chunk = 256;
  bool local = true;
  bool global = true;
  bool shift_tokens = false;

  std::string prefix_obstacle() const { return local ? bias_obstacle() : ""; }
  bool has_position_limit() const { return false; }  // a Toeplitz bias knows the positions of a chunk
};

template <class Fields>
void describe(Fields& f, FlashConfig& c) {
  f("chunk", c.chunk, between(1, 65536),
    "tokens in a chunk (C), counted from the start of the document; 256 in the paper");
  f("local", c.local, any(), "the quadratic part within chunks; false for ablation");
  f("global", c.global, any(), "the linear part across chunks; false for ablation");
  describe_unit(f, c);
  describe_compat(f, [&](auto& g) {
    describe_unit_compat(g, c);
    g("shift_tokens", c.shift_tokens, any(),
      "the first half of a token's features, as the mixer reads them, are those of the token before it "
      "(FLASH-pytorch)");
  });
}
inline void validate(const FlashConfig& c, const ModelShape& model, Problems& problems) {
  validate(static_cast<const GatedUnitConfig&>(c), model, problems);
  if (c.chunk < 1) problems.add("chunk", "a chunk needs at least one token");
  if (!c.local && !c.global)
    problems.add("local", "neither the local nor the global part is on: nothing would be mixed");
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// (u * (L + G)) W_o: L is attention() among the tokens of a chunk, G chunk_linear_attention() over the chunks in front
/// (bidirectional: over the whole document). Parameters as GatedUnit names them; rows of gain and offset: local_q,
/// local_k, global_q, global_k, without those of a part that is off. Documents may have any length. With shift_tokens
/// it reads shift_tokens(x) (nn/systems/flash/shift.hpp).
class Flash final : public Mixer {
 public:
  /// Throws std::invalid_argument when both parts are off.
  Flash(const Scope& scope, const MixerShape& shape, const FlashConfig& config);

  Var forward(const Var& x, const Context& context) const override;
  std::unique_ptr<MixerState> make_state(int64_t batch) const override;
  Var prefill(const Var& x, MixerState& state) const override;
  Var step(const Var& x, MixerState& state) const override;
  MixerCost cost(int64_t length) const override;
  std::vector<MixingWeights> mixing_weights(const Var& x, const Context& context) const override;

 private:
  struct Parts {
    Var gate, value;                           // (B, T, E)
    Var local_q, local_k, global_q, global_k;  // (B, T, Z); undefined for a part that is off
  };
  /// Of x, shifted where the configuration asks for it.
  Parts project(const Var& shifted, const Ids& positions) const;
  Parts project(const Var& x, const Segments& segments) const;
  /// Global part's options with n.
  ChunkLinearOptions linear_options(bool causal) const;
  /// b of the quadratic part.
  Var local_bias(const Segments& segments) const { return unit_.bias(std::min(config_.chunk, segments.longest())); }
  /// L + G
  Var mix(const Parts& parts, const Segments& segments, const Context& context, bool causal) const;

  MixerShape shape_;
  FlashConfig config_;
  GatedUnit unit_;
};

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const FlashConfig& config);

}  // namespace capstan::CAPSTAN_PRECISION
