// The mixers of the Attention Free Transformer, by their configurations. Zhai et al. 2021, arXiv 2105.14103. Formulas,
// costs and options are in nn/systems/aft/README.md; tests/nn/systems/aft/ has a file for each promise.
#pragma once

#include "core/config/schema.hpp"
#include "nn/layers/layers.hpp"
#include "nn/mixer/mixer.hpp"
#include "nn/mixer/model_shape.hpp"

namespace capstan {

enum class PositionBias { factorised, dense };

inline std::vector<EnumName<PositionBias>> enum_names(PositionBias) {
  return {{PositionBias::factorised, "factorised"}, {PositionBias::dense, "dense"}};
}

/// What the four variants share.
struct AftProjections {
  bool bias = false;  // biases of query and value (and of the output projection); one of the key would cancel
  bool output_projection = true;
  int64_t inner = 0;
};

template <class Fields>
void describe_projections(Fields& f, AftProjections& c) {
  f("bias", c.bias, any(), "biases of the projections (in aft and attention not of the key)");
  f("output_projection", c.output_projection, any(), "a linear map after the mixer");
  f("inner", c.inner, width_from(0), "width of queries, keys and values; 0 = that of the model");
}
/// The rule of all four variants.
inline void validate(const AftProjections& c, const ModelShape& model, Problems& problems) {
  if (c.inner != 0 && c.inner != model.width && !c.output_projection)
    problems.add("inner", "without output_projection, only the model's width is possible");
}

/// w = 0: every key counts by its content alone. O(T D) time, O(D) decode state.
struct AftSimpleConfig : AftProjections {
  static constexpr const char* type_name = "aft-simple";
  bool has_position_limit() const { return false; }
  std::string prefix_obstacle() const { return ""; }
};

template <class Fields>
void describe(Fields& f, AftSimpleConfig& c) {
  describe_projections(f, c);
}

/// A learned w_ts for pairs of positions.
struct AftPositions : AftProjections {
  PositionBias position_bias = PositionBias::factorised;
  int64_t rank = 64;
  double position_stddev = 0.1;

  bool has_position_limit() const { return true; }
  std::string prefix_obstacle() const { return ""; }
};

template <class Fields>
void describe_positions(Fields& f, AftPositions& c) {
  f("position_bias", c.position_bias, any(),
    "how the position bias w is stored: factorised (w = u v^T) or dense (w itself)");
  f("rank", c.rank, width_from(1), "inner size of the factorised position bias (d' in the paper)");
  f("position_stddev", c.position_stddev, at_least(0), "standard deviation of the initial parameters of w");
  describe_projections(f, c);
}

/// For every pair. O(T^2 D) time, O(T D) memory and decode state.
struct AftFullConfig : AftPositions {
  static constexpr const char* type_name = "aft-full";
};

template <class Fields>
void describe(Fields& f, AftFullConfig& c) {
  describe_positions(f, c);
}

/// w_ts inside a window, 0 outside it, where tokens still see each other. O(T s D) time.
struct AftLocalConfig : AftPositions {
  static constexpr const char* type_name = "aft-local";
  int64_t window = 32;
};

template <class Fields>
void describe(Fields& f, AftLocalConfig& c) {
  f("window", c.window, length_from(1),
    "w_ts is learned for |t - s| < window and is 0 elsewhere; called s in the paper");
  describe_positions(f, c);
}

/// w depends on t - s and the head only, so that any length works. O(T s D) time.
struct AftConvConfig : AftProjections {
  static constexpr const char* type_name = "aft-conv";
  int64_t window = 32;
  int64_t heads = 4;

  bool has_position_limit() const { return false; }
  std::string prefix_obstacle() const { return "the kernel of aft-conv depends on the direction"; }
};

template <class Fields>
void describe(Fields& f, AftConvConfig& c) {
  f("window", c.window, length_from(2),
    "number of taps per head, one for each distance below the window (in both directions if bidirectional)");
  f("heads", c.heads, width_from(1), "number of heads; must divide the width");
  describe_projections(f, c);
}
inline void validate(const AftConvConfig& c, const ModelShape& model, Problems& problems) {
  validate(static_cast<const AftProjections&>(c), model, problems);
  check_heads(c.heads, {c.inner > 0 ? c.inner : model.width, model.max_length}, problems);
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const AftSimpleConfig& config);
std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const AftFullConfig& config);
std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const AftLocalConfig& config);
std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const AftConvConfig& config);

}  // namespace capstan::CAPSTAN_PRECISION
