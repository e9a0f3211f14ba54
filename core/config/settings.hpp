// A described struct as text, one entry per field: what a checkpoint records about its configuration.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/base/error.hpp"
#include "core/config/schema.hpp"

namespace capstan {

using Settings = std::map<std::string, std::string>;  // "optimizer.beta1" -> "0.9"

/// Visitor over describe().
class SettingsCollector {
 public:
  template <class T>
  void operator()(const char* name, T& field, const Constraint&, const char*) {
    add(prefix_.empty() ? name : prefix_ + "." + name, field);
  }
  Settings take() { return std::move(settings_); }

 private:
  template <class T>
  void add(const std::string& key, T& field) {
    if constexpr (std::is_same_v<T, std::string>) {
      settings_[key] = field;
    } else if constexpr (std::is_arithmetic_v<T>) {
      settings_[key] = fmt::format("{}", field);
    } else if constexpr (std::is_enum_v<T>) {
      settings_[key] = enum_name(field);
    } else {
      add_composite(key, field);
    }
  }
  template <class T>
  void add_composite(const std::string& key, std::optional<T>& field) {
    if (field) add(key, *field);
  }
  template <class T>
  void add_composite(const std::string& key, std::vector<T>& field) {
    for (size_t i = 0; i < field.size(); ++i) add(key + "." + std::to_string(i), field[i]);
  }
  template <class... Cases>
  void add_composite(const std::string& key, std::variant<Cases...>& field) {
    std::visit(
        [&](auto& config) {
          settings_[key] = config.type_name;
          add_composite(key, config);
        },
        field);
  }
  template <class T>
  void add_composite(const std::string& key, T& config) {
    const std::string outer = std::exchange(prefix_, key);
    describe(*this, config);
    prefix_ = outer;
  }

  std::string prefix_;
  Settings settings_;
};

template <class Config>
Settings settings_of(Config config) {
  SettingsCollector collector;
  describe(collector, config);
  return collector.take();
}

}  // namespace capstan
