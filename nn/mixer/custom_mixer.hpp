// Mixers that a program adds by name before it makes a model; from then on they are used like any other. With its own
// main() such a program has everything that `capstan` has (docs/library.md):
//
//   register_mixer<MineConfig>();             // YAML: mixer: {type: custom, name: mine, heads: 8}
//   return run_command_line(argc, argv);
//
// MineConfig and its mixer are written as those of the library are (docs/adding.md).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "nn/mixer/custom_mixer_config.hpp"
#include "nn/mixer/mixer.hpp"
#include "nn/mixer/mixer_interface.hpp"
#include "nn/params/scope.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Its parameters are made through `scope`. A mixer that has parameters for every position has shape.max_length of
/// them, and throws Error for a longer document.
using MixerMaker =
    std::function<std::unique_ptr<Mixer>(const Scope& scope, const MixerShape& shape, const AnyConfig& options)>;

/// Before the first model is made, from one thread. Throws std::invalid_argument for an empty
/// name and for one that exists.
void register_mixer(const std::string& name, CustomMixerOptions options, MixerMaker make);

/// A mixer without options.
void register_mixer(const std::string& name,
                    std::function<std::unique_ptr<Mixer>(const Scope& scope, const MixerShape& shape)> make);

/// A mixer whose options are a config struct: its describe(), validate(), has_position_limit() and make() are used as those
/// of the library's mixers are.
template <class Config>
void register_mixer(const std::string& name = Config::type_name) {
  static_assert(is_mixer_config<Config>());
  CustomMixerOptions options{AnyConfig::of(Config{}),
                             [](const AnyConfig& config, const ModelShape& model, Problems& problems) {
                               validate_config(config.as<Config>(), model, problems);
                             },
                             [](const AnyConfig& config) { return config.as<Config>().has_position_limit(); }};
  register_mixer(name, std::move(options), [](const Scope& scope, const MixerShape& shape, const AnyConfig& config) {
    return make(scope, shape, config.as<Config>());
  });
}

/// Throws ConfigError with the registered names when there is no such mixer.
std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const CustomMixerConfig& config);

}  // namespace capstan::CAPSTAN_PRECISION
