// Small samples of every mixer in the variant: one list for the tests of nn, models and train. An alternative of
// MixerConfig without a function samples() does not compile here.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>
#include <type_traits>
#include <utility>

#include "tests/nn/systems/aft/sample.hpp"
#include "tests/nn/systems/attention/sample.hpp"
#include "tests/nn/systems/fastformer/sample.hpp"
#include "tests/nn/systems/flash/sample.hpp"
#include "tests/nn/systems/gau/sample.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

template <class Config>
using SamplesOf = decltype(samples(std::declval<Config>(), int64_t{}));

template <class... Configs>
std::vector<MixerCase> samples_of(const std::variant<Configs...>*, int64_t heads) {
  std::vector<MixerCase> all;
  const auto add = [&](auto* none) {
    using Config = std::remove_pointer_t<decltype(none)>;
    if constexpr (!std::is_same_v<Config, CustomMixerConfig>) {
      static_assert(
          IsValid<SamplesOf, Config>::value,
          "an entry of MixerConfig needs tests/nn/systems/NAME/sample.hpp with samples(Config, heads), included above");
      for (const MixerCase& sample : samples(Config{}, heads)) all.push_back(sample);
    }
  };
  (add(static_cast<Configs*>(nullptr)), ...);
  return all;
}

/// At least one of each mixer; the first of each has its name. `heads` must divide the width that they are used with.
inline std::vector<MixerCase> mixer_samples(int64_t heads) {
  return samples_of(static_cast<const MixerConfig*>(nullptr), heads);
}

/// A sample for tests of something else: in a Transformer's block, for texts of any length.
inline MixerConfig any_mixer(int64_t heads) {
  const std::vector<MixerCase> all = mixer_samples(heads);
  for (const MixerCase& c : all)
    if (c.any_length && c.wiring != Wiring::gated_units) return c.config;
  return all.front().config;
}

/// Visitor that sets a number, a flag or an enum by its name.
class OptionSetter {
 public:
  OptionSetter(std::string name, std::string value) : name_(std::move(name)), value_(std::move(value)) {}
  template <class T>
  void operator()(const char* name, T& field, const Constraint&, const char*) {
    if (name != name_) return;
    if constexpr (std::is_same_v<T, bool>) {
      set_ = true;
      field = value_ == "true";
    } else if constexpr (std::is_arithmetic_v<T>) {
      set_ = true;
      field = static_cast<T>(std::strtod(value_.c_str(), nullptr));
    } else if constexpr (std::is_enum_v<T>) {
      for (const auto& entry : enum_names(field))
        if (value_ == entry.name) {
          set_ = true;
          field = entry.value;
        }
    }
  }
  bool set() const { return set_; }

 private:
  std::string name_, value_;
  bool set_ = false;
};

/// Sets an option as YAML has it; false for a struct without it, and for a value that its enum does not have.
template <class Config>
bool set_option(Config& config, const std::string& name, const std::string& value) {
  OptionSetter setter(name, value);
  describe(setter, config);
  return setter.set();
}
inline bool set_option(MixerConfig& mixer, const std::string& name, const std::string& value) {
  return std::visit([&](auto& config) { return set_option(config, name, value); }, mixer);
}

/// The mixer of this name with these options; none, which is reported as skipped, in a build without that system.
inline std::optional<MixerConfig> mixer_called(const std::string& name,
                                               const std::vector<std::pair<std::string, std::string>>& options = {}) {
  for (MixerConfig& mixer : default_mixers()) {
    if (name != mixer_name(mixer)) continue;
    for (const auto& [key, value] : options) REQUIRE(set_option(mixer, key, value));
    return std::move(mixer);
  }
  MESSAGE("skipped: this build has no mixer " << name);
  return std::nullopt;
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
