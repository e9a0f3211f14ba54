// AFT modules, inputs and comparisons for the tests of nn/.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/ops_aft.hpp"
#include "core/tape.hpp"
#include "nn/block.hpp"
#include "tests/support/ragged.hpp"
#include "tests/support/weights.hpp"

CAPSTAN_BEGIN
namespace testing {

/// Past two SIMD registers of floats, and no multiple of one; 35 = 5 heads of 7 channels.
constexpr int64_t width = 35;

/// What design.md allows per layer, relative to max(1, max |y|).
constexpr double layer_tolerance = sizeof(real) == 4 ? 1e-5 : 1e-12;

/// A mixer with its window (0: it has none) and whether it works at any length.
struct MixerCase {
  std::string name;
  MixerConfig config;
  int64_t window;
  bool any_length;
};

template <class Config>
Config with_projections(Config config, const AftProjections& projections) {
  static_cast<AftProjections&>(config) = projections;
  return config;
}

inline AftFullConfig full_config(PositionBias position_bias, const AftProjections& projections) {
  AftFullConfig config = with_projections(AftFullConfig{}, projections);
  config.position_bias = position_bias;
  config.rank = 3;
  return config;
}

inline AftLocalConfig local_config(int64_t window, PositionBias position_bias, const AftProjections& projections) {
  AftLocalConfig config = with_projections(AftLocalConfig{}, projections);
  config.window = window;
  config.position_bias = position_bias;
  config.rank = 3;
  return config;
}

inline AftConvConfig conv_config(int64_t window, int64_t heads, const AftProjections& projections) {
  AftConvConfig config = with_projections(AftConvConfig{}, projections);
  config.window = window;
  config.heads = heads;
  return config;
}

constexpr AftProjections plain{false, false, true}, biased{true, false, true}, published{true, true, false},
    bare{false, false, false};

/// All variants, with every option in at least one of them.
inline std::vector<MixerCase> mixer_cases() {
  const auto factorised = PositionBias::factorised, dense = PositionBias::dense;
  return {{"simple", with_projections(AftSimpleConfig{}, plain), 0, true},
          {"simple, all biases, no output projection", with_projections(AftSimpleConfig{}, published), 0, true},
          {"full", full_config(factorised, biased), 0, false},
          {"full dense, all biases, no output projection", full_config(dense, published), 0, false},
          {"local", local_config(5, factorised, biased), 5, false},
          {"local window 1", local_config(1, factorised, plain), 1, false},
          {"local window 19", local_config(19, factorised, bare), 19, false},
          {"local dense, all biases, no output projection", local_config(5, dense, published), 5, false},
          {"conv", conv_config(5, 5, biased), 5, true},
          {"conv one head", conv_config(6, 1, plain), 6, true},
          {"conv a head per channel", conv_config(2, width, bare), 2, true},
          {"conv window 19, all biases, no output projection", conv_config(19, 7, published), 19, true}};
}

/// A module with the store it lives in.
template <class Module>
struct Built {
  std::unique_ptr<ParamStore> store = std::make_unique<ParamStore>();
  std::unique_ptr<Module> module;
};

inline Built<Mixer> built_mixer(const MixerConfig& config, bool causal, int64_t max_length) {
  Built<Mixer> built;
  built.module = make_mixer(Scope(*built.store, 1), {width, max_length, causal, 1}, config);
  redraw(*built.store);
  return built;
}

/// Tokens [begin, end) of every sequence: (B, T, D) -> (B, end - begin, D).
inline Array tokens(const Array& x, int64_t begin, int64_t end) {
  const int64_t batch = x.dim(0), length = x.dim(1), channels = x.dim(2);
  Array part(Shape{batch, end - begin, channels});
  for (int64_t row = 0; row < batch; ++row)
    std::copy_n(x.data() + (row * length + begin) * channels, (end - begin) * channels,
                part.mutable_data() + row * (end - begin) * channels);
  return part;
}

/// Cuts AFT's tiles at `length` targets while it lives.
class AftTileLength {
 public:
  explicit AftTileLength(int64_t length) { set_aft_tile(length); }
  ~AftTileLength() { set_aft_tile(0); }
  AftTileLength(const AftTileLength&) = delete;
  AftTileLength& operator=(const AftTileLength&) = delete;
};

}  // namespace testing
CAPSTAN_END
