// What a mixer's config struct must have, and what must be declared with it, checked by the compiler: for the entries
// of MixerConfig (nn/systems/mixer_config.hpp) and for registered mixers. docs/adding.md has an example.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "core/config/any_config.hpp"
#include "nn/mixer/mixer.hpp"
#include "nn/mixer/model_shape.hpp"
#include "nn/params/scope.hpp"

namespace capstan::CAPSTAN_PRECISION {

template <template <class> class Expression, class Config, class = void>
struct IsValid : std::false_type {};
template <template <class> class Expression, class Config>
struct IsValid<Expression, Config, std::void_t<Expression<Config>>> : std::true_type {};

template <class Config>
using TypeNameOf = decltype(static_cast<const char*>(Config::type_name));
template <class Config>
using DescribeOf = decltype(describe(std::declval<AnyFieldCaller&>(), std::declval<Config&>()));
template <class Config>
using HasPositionLimitOf = decltype(static_cast<bool>(std::declval<const Config&>().has_position_limit()));
template <class Config>
using PrefixObstacleOf = decltype(static_cast<std::string>(std::declval<const Config&>().prefix_obstacle()));
template <class Config>
using MakeOf =
    std::enable_if_t<std::is_same_v<std::unique_ptr<Mixer>,
                                    decltype(make(std::declval<const Scope&>(), std::declval<const MixerShape&>(),
                                                  std::declval<const Config&>()))>>;
template <class Config>
using ValidateOf =
    decltype(validate(std::declval<const Config&>(), std::declval<const ModelShape&>(), std::declval<Problems&>()));

/// Fails to compile, naming what is missing, unless Config is the config struct of a mixer.
template <class Config>
constexpr bool is_mixer_config() {
  static_assert(IsValid<TypeNameOf, Config>::value,
                "a mixer's config needs its name in YAML: static constexpr const char* type_name = \"mine\";");
  static_assert(
      IsValid<DescribeOf, Config>::value,
      "a mixer's config needs template <class Fields> void describe(Fields& f, MineConfig& c) in its namespace");
  static_assert(IsValid<HasPositionLimitOf, Config>::value,
                "a mixer's config needs bool has_position_limit() const: has the mixer parameters for every position?");
  static_assert(
      IsValid<PrefixObstacleOf, Config>::value,
      "a mixer's config needs std::string prefix_obstacle() const: why the mixer cannot read context.prefixes "
      "(nn/mixer/prefixes.hpp); empty when it does");
  static_assert(
      IsValid<MakeOf, Config>::value,
      "a mixer needs std::unique_ptr<Mixer> make(const Scope&, const MixerShape&, const MineConfig&), declared "
      "in the namespace of its config or in capstan::CAPSTAN_PRECISION");
  return true;
}

/// Calls the mixer's own validate(), where it has one.
template <class Config>
void validate_config(const Config& config, const ModelShape& model, Problems& problems) {
  if constexpr (IsValid<ValidateOf, Config>::value) validate(config, model, problems);
}

}  // namespace capstan::CAPSTAN_PRECISION
