// The configuration of a mixer that a program adds by name (nn/mixer/custom_mixer.hpp).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/config/any_config.hpp"
#include "core/config/schema.hpp"
#include "nn/mixer/mixer_rules.hpp"

namespace capstan {

struct CustomMixerConfig {
  static constexpr const char* type_name = "custom";
  std::string name;
  AnyConfig options = {};  // the mixer's own config struct; empty: its defaults

  bool has_position_limit() const;
};

/// What is known of a registered mixer before one is made. Empty functions: no rules, no parameters per position.
struct CustomMixerOptions {
  AnyConfig defaults = {};
  std::function<void(const AnyConfig& options, const ModelShape& model, Problems& problems)> validate = {};
  std::function<bool(const AnyConfig& options)> has_position_limit = {};
};

/// Used by register_mixer(); replaces what the name had.
void set_custom_options(const std::string& name, CustomMixerOptions options);
/// nullptr when there is no such mixer.
const CustomMixerOptions* find_custom_options(const std::string& name);
/// In alphabetical order.
std::vector<std::string> registered_mixers();
/// The config's options, or the defaults of the mixer it names.
AnyConfig options_of(const CustomMixerConfig& config);

template <class Fields>
void describe(Fields& f, CustomMixerConfig& c) {
  f("name", c.name, not_empty(),
    "the name under which a program that uses Capstan as a library registered its mixer; the mixer's options are "
    "further keys");
  c.options = options_of(c);  // a reader has just set the name
  describe(f, c.options);
}
/// No for a mixer that is not registered: only its name is reported then, not its keys.
inline bool knows_all_keys(const CustomMixerConfig& c) { return find_custom_options(c.name) != nullptr; }
/// Adds a problem when there is no such mixer, and those that the mixer's own validate() finds.
void validate(const CustomMixerConfig& config, const ModelShape& model, Problems& problems);

}  // namespace capstan
