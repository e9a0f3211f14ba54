// Mixers that a program brings along: registered by name before a model is made, then used like any other. With its own
// main() such a program has everything that `capstan` has (docs/library.md):
//
//   register_mixer("mine", [](const Scope& scope, const MixerShape& shape) { return std::make_unique<Mine>(scope,
//   shape); }); return run_command_line(argc, argv);  // YAML: mixer: {type: custom, name: mine}
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/config/schema.hpp"
#include "nn/mixers/mixer.hpp"
#include "nn/params/scope.hpp"

namespace capstan {

struct CustomMixerConfig {
  static constexpr const char* type_name = "custom";
  std::string name;
};

template <class Fields>
void describe(Fields& f, CustomMixerConfig& c) {
  f("name", c.name, not_empty(), "the name under which a program that uses Capstan as a library registered its mixer");
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// Its parameters are made through `scope`. A mixer that has parameters for every position knows shape.max_length of
/// them, and throws Error for a longer document.
using MixerMaker = std::function<std::unique_ptr<Mixer>(const Scope& scope, const MixerShape& shape)>;

/// Before the first model is made, from one thread. Throws std::invalid_argument for an empty name and for one that
/// exists.
void register_mixer(const std::string& name, MixerMaker make);
/// In alphabetical order.
std::vector<std::string> registered_mixers();
/// Throws ConfigError with the names there are when there is no such mixer.
std::unique_ptr<Mixer> make_custom_mixer(const Scope& scope, const MixerShape& shape, const CustomMixerConfig& config);

}  // namespace capstan::CAPSTAN_PRECISION
