// Optimizers that a program registers (train/optimizers/register_optimizer.hpp). All of them are one alternative of
// OptimizerConfig, so what is written for the variant works for them. tests/run/test_custom_optimizer.cpp.
#pragma once

#include <string>
#include <vector>

#include "core/config/any_config.hpp"
#include "train/optimizers/update.hpp"

namespace capstan {

/// What a registered config struct says, for code that does not know its type.
struct CustomOptimizer {
  const char* type_name;  // the `type` in a configuration
  AnyConfig defaults;     // the config struct, as it is without any key
  std::vector<StateSpec> (*states)();
  void (*update)(const AnyConfig& options, const Update& update, std::vector<OptimizerState>& states);
};

/// Used by register_optimizer(), on one thread, before any configuration is read. Throws std::invalid_argument for a
/// name that is registered already.
void add_custom_optimizer(const CustomOptimizer& optimizer);

/// The configuration of a registered optimizer.
struct CustomOptimizerConfig {
  /// The optimizer of this name, with the defaults of its config struct. Throws ConfigError, with the registered names,
  /// for an unknown name.
  explicit CustomOptimizerConfig(const std::string& name);
  /// The registered names, in alphabetical order.
  static std::vector<std::string> type_names();

  std::vector<StateSpec> states() const { return optimizer->states(); }
  void update(const Update& update, std::vector<OptimizerState>& states) const {
    optimizer->update(options, update, states);
  }

  const CustomOptimizer* optimizer;
  const char* type_name;
  AnyConfig options;  // the optimizer's own config struct
};

template <class Fields>
void describe(Fields& f, CustomOptimizerConfig& c) {
  describe(f, c.options);
}
inline void validate(const CustomOptimizerConfig& c, Problems& problems) { c.options.find_problems(problems); }

}  // namespace capstan
