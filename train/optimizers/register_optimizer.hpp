// An optimizer that a program adds before it reads a configuration; from then on it is used like any other:
//
//   register_optimizer<MineConfig>();         // YAML: train: {optimizer: {type: mine, momentum: 0.8}}
//   return run_command_line(argc, argv);
//
// MineConfig is written as those of the library are (train/optimizers/optimizer.hpp, docs/adding.md). A header for
// programs: the library does not include it. tests/run/test_custom_optimizer.cpp.
#pragma once

#include <string>
#include <type_traits>

#include "core/base/error.hpp"
#include "train/optimizers/optimizer.hpp"

namespace capstan {

template <class Config>
bool has_type_name(const std::string& name) {
  if constexpr (std::is_same_v<Config, CustomOptimizerConfig>)
    return false;
  else
    return name == Config::type_name;
}
/// Is this the type_name of an optimizer in the variant?
template <class... Configs>
bool is_of_library(const std::string& name, const std::variant<Configs...>*) {
  return (has_type_name<Configs>(name) || ...);
}

/// Call it before any configuration is read, on one thread. Throws std::invalid_argument for a type_name in use.
template <class Config>
void register_optimizer() {
  check(!is_of_library(Config::type_name, static_cast<const OptimizerConfig*>(nullptr)),
        "register_optimizer: \"{}\" is an optimizer of the library", Config::type_name);
  add_custom_optimizer({Config::type_name, AnyConfig::of(Config{}), [] { return Config::states(); },
                        [](const AnyConfig& options, const Update& update, std::vector<OptimizerState>& states) {
                          options.as<Config>().update(update, states);
                        }});
}

}  // namespace capstan
