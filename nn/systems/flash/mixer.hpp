// FLASH's mixed chunk attention: a gated attention unit that is quadratic inside chunks and linear across them.
// Hua et al. 2022, arXiv 2202.10447. nn/systems/flash/README.md has the formulas, tests/nn/systems/flash/test_mixer.cpp
// the promises and the faults of other implementations.
#pragma once

#include <algorithm>

#include "nn/mixer/model_shape.hpp"
#include "nn/systems/flash/chunk_linear.hpp"
#include "nn/systems/gated/unit.hpp"

namespace capstan {

/// O(T (C (Z + E) + Z E)) time, O(Z E + C (2Z + E)) decode state. What the parts are divided by, local and global:
///   counted  the tokens of its chunk that a query sees; those that it sees in M;
///   paper    C; C times the number of chunks in M;
///   document the tokens of its document, causal up to the query itself; those that it sees in M.
struct FlashConfig : GatedUnitConfig {
  static constexpr const char* type_name = "flash";
  FlashConfig() { position_bias = RelativeBiasKind::toeplitz; }
  int64_t chunk = 256;
  bool local = true;
  bool global = true;

  std::string prefix_obstacle() const { return ""; }
  bool has_position_limit() const { return false; }  // a Toeplitz bias knows the positions of a chunk
};

template <class Fields>
void describe(Fields& f, FlashConfig& c) {
  f("chunk", c.chunk, between(1, 65536),
    "tokens in a chunk (C), counted from the start of the document; 256 in the paper");
  f("local", c.local, any(), "the quadratic part within chunks; false for ablation");
  f("global", c.global, any(), "the linear part across chunks; false for ablation");
  describe_unit(f, c);
}
inline void validate(const FlashConfig& c, const ModelShape& model, Problems& problems) {
  validate(static_cast<const GatedUnitConfig&>(c), model, problems);
  if (c.chunk < 1) problems.add("chunk", "a chunk needs at least one token");
  if (!c.local && !c.global)
    problems.add("local", "neither the local nor the global part is on: nothing would be mixed");
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const FlashConfig& config);

}  // namespace capstan::CAPSTAN_PRECISION
