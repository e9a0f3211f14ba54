// A mixer that a program adds before it makes a model; from then on it is used like any other. With its own main() such
// a program has everything that `capstan` has (docs/library.md):
//
//   register_mixer<MineConfig>();             // YAML: mixer: {type: mine, heads: 8}
//   return run_command_line(argc, argv);
//
// MineConfig and its mixer are written as those of the library are (docs/adding.md).
// tests/nn/systems/test_register_mixer.cpp.
#pragma once

#include "core/base/error.hpp"
#include "nn/systems/mixer_config.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Call it before any model is made, on one thread. Throws std::invalid_argument for a type_name in use.
template <class Config>
void register_mixer() {
  static_assert(is_mixer_config<Config>());
  for (const MixerConfig& mixer : default_mixers())
    check(std::string(Config::type_name) != mixer_name(mixer), "register_mixer: \"{}\" is a mixer of the library",
          Config::type_name);
  const CustomMixerMaker maker = [](const Scope& scope, const MixerShape& shape, const AnyConfig& options) {
    return make(scope, shape, options.as<Config>());
  };
  add_custom_mixer({Config::type_name, AnyConfig::of(Config{}),
                    [](const AnyConfig& options, const ModelShape& model, Problems& problems) {
                      validate_config(options.as<Config>(), model, problems);
                    },
                    [](const AnyConfig& options) { return options.as<Config>().has_position_limit(); },
                    [](const AnyConfig& options) { return options.as<Config>().prefix_obstacle(); }, maker});
}

}  // namespace capstan::CAPSTAN_PRECISION
