// A mixer of our own: every token sees the mean of the tokens up to it. running_mean.cpp has it with forward() alone,
// fast_running_mean.cpp with decoding of its own; a program takes one of the two.
#pragma once

#include <memory>
#include <string>

#include "core/config/schema.hpp"
#include "nn/mixer/mixer.hpp"
#include "nn/params/scope.hpp"

namespace capstan {

/// Its options in a configuration: `mixer: {type: running-mean, expansion: 2}`.
struct RunningMeanConfig {
  static constexpr const char* type_name = "running-mean";
  int64_t expansion = 1;

  /// It has no parameters per position, so documents may have any length.
  bool has_position_limit() const { return false; }
  /// Its forward() reads context.prefixes, so `model.prefix: bidirectional` may be used.
  std::string prefix_obstacle() const { return ""; }
};

/// The name, limits and help of every option. Unknown keys, values past the limits and --set are handled from here.
template <class Fields>
void describe(Fields& f, RunningMeanConfig& c) {
  f("expansion", c.expansion, between(1, 16), "features of the averaged values over the model's width");
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// y_t = W_o (sigmoid(g_t) * mean of v_s over the tokens s that t sees), with (v, g) = W x.  x: (B, T, D) -> (B, T, D).
/// Causally a token sees itself and the preceding ones, bidirectionally its whole document. Parameters to_vg.weight
/// (2E, D), to_out.weight (D, E) and biases, with E = expansion D.
std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const RunningMeanConfig& config);

}  // namespace capstan::CAPSTAN_PRECISION
