// A described struct whose type is known only where it is made: the options of a mixer or optimizer that a program
// registers by name (nn/mixer/custom_mixer, train/optimizers/register_optimizer.hpp).
// tests/nn/systems/test_register_mixer.cpp and tests/run/test_custom_mixer.cpp hold that its fields are read as any
// other's.
#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/config/schema.hpp"

namespace capstan {

/// A field of such a struct. Enums are visited as text whose choices are their spellings.
using AnyField = std::variant<bool*, std::int64_t*, double*, std::string*, std::optional<std::int64_t>*,
                              std::optional<double>*, std::optional<std::string>*, std::vector<std::int64_t>*,
                              std::vector<double>*, std::vector<std::string>*>;

/// Takes one field of describe(): name, field, limits, help.
using AnyFieldVisitor =
    std::function<void(const char* name, AnyField field, const Constraint& constraint, const char* help)>;

/// The visitor over describe() that hands each field to an AnyFieldVisitor.
class AnyFieldCaller {
 public:
  explicit AnyFieldCaller(const AnyFieldVisitor& visit) : visit_(visit) {}

  template <class T>
  void operator()(const char* name, T& field, const Constraint& constraint, const char* help) {
    if constexpr (std::is_enum_v<T>) {
      Constraint spellings = constraint;
      for (const auto& entry : enum_names(field)) spellings.choices.emplace_back(entry.name);
      std::string spelling = enum_name(field);
      visit_(name, &spelling, spellings, help);
      field = enum_value<T>(spelling).value_or(field);
    } else {
      static_assert(std::is_constructible_v<AnyField, T*>,
                    "an option of a registered part is bool, int64_t, double, std::string or an enum, or an optional "
                    "or a vector of int64_t, double or std::string");
      visit_(name, AnyField(&field), constraint, help);
    }
  }

 private:
  const AnyFieldVisitor& visit_;
};

/// Holds a copy of any struct with describe() whose fields are those of AnyField; empty: a struct without fields.
class AnyConfig {
 public:
  AnyConfig() = default;
  template <class Config>
  static AnyConfig of(Config config) {
    AnyConfig any;
    any.value_ = std::move(config);
    any.visit_ = [](std::any& value, const AnyFieldVisitor& visit) {
      AnyFieldCaller fields(visit);
      describe(fields, *std::any_cast<Config>(&value));
    };
    if constexpr (HasValidate<Config>::value)
      any.validate_ = [](const std::any& value, Problems& problems) {
        validate(*std::any_cast<Config>(&value), problems);
      };
    return any;
  }

  /// The struct. Throws std::bad_any_cast unless it is a Config.
  template <class Config>
  const Config& as() const {
    return std::any_cast<const Config&>(value_);
  }
  void for_each_field(const AnyFieldVisitor& visit) {
    if (visit_ != nullptr) visit_(value_, visit);
  }
  /// Calls the struct's validate(), where it has one.
  void find_problems(Problems& problems) const {
    if (validate_ != nullptr) validate_(value_, problems);
  }

 private:
  std::any value_;
  void (*visit_)(std::any& value, const AnyFieldVisitor& visit) = nullptr;
  void (*validate_)(const std::any& value, Problems& problems) = nullptr;
};

/// The fields of the struct it holds, as if they were written here.
template <class Fields>
void describe(Fields& f, AnyConfig& c) {
  c.for_each_field([&f](const char* name, AnyField field, const Constraint& constraint, const char* help) {
    std::visit([&](auto* value) { f(name, *value, constraint, help); }, field);
  });
}

}  // namespace capstan
