// Mixers that a program registers (nn/systems/register_mixer.hpp). All of them are one alternative of MixerConfig.
// tests/nn/systems/test_register_mixer.cpp and tests/run/test_custom_mixer.cpp hold that they are used as the
// library's.
#pragma once

#include <any>
#include <memory>
#include <string>
#include <vector>

#include "core/config/any_config.hpp"
#include "nn/mixer/mixer.hpp"
#include "nn/mixer/model_shape.hpp"
#include "nn/params/scope.hpp"

namespace capstan {

/// What a registered config struct says, for code that does not know its type.
struct CustomMixer {
  const char* type_name;
  AnyConfig defaults;
  void (*validate)(const AnyConfig& options, const ModelShape& model, Problems& problems);
  bool (*has_position_limit)(const AnyConfig& options);
  std::string (*prefix_obstacle)(const AnyConfig& options);
  std::any make;  // a CustomMixerMaker
};

/// Used by register_mixer(). Throws std::invalid_argument for a name that is registered already.
void add_custom_mixer(const CustomMixer& mixer);

/// The configuration of a registered mixer.
struct CustomMixerConfig {
  /// With the defaults of its config struct. Throws ConfigError, with the registered names, for an unknown name.
  explicit CustomMixerConfig(const std::string& name);
  /// The registered names, in alphabetical order.
  static std::vector<std::string> type_names();

  bool has_position_limit() const { return mixer->has_position_limit(options); }
  std::string prefix_obstacle() const { return mixer->prefix_obstacle(options); }

  const CustomMixer* mixer;
  const char* type_name;
  AnyConfig options;  // the mixer's own config struct
};

template <class Fields>
void describe(Fields& f, CustomMixerConfig& c) {
  describe(f, c.options);
}
inline void validate(const CustomMixerConfig& c, const ModelShape& model, Problems& problems) {
  c.mixer->validate(c.options, model, problems);
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

using CustomMixerMaker = std::unique_ptr<Mixer> (*)(const Scope& scope, const MixerShape& shape,
                                                    const AnyConfig& options);

inline std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const CustomMixerConfig& config) {
  return std::any_cast<CustomMixerMaker>(config.mixer->make)(scope, shape, config.options);
}

}  // namespace capstan::CAPSTAN_PRECISION
