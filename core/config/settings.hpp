// A described struct field by field, and as text: what a checkpoint records about its configuration, and by what ranks,
// data sources and resumed runs notice that it differs. The text of a value must stay as it is: stored runs have it
// (tests/cli/runs/test_old_runs.cpp).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.hpp"
#include "core/config/schema.hpp"

namespace capstan {

/// Visitor over describe() that calls visit(key, value) for each field without fields of its own, such as
/// "optimizer.beta1" with a double, and visit("optimizer", name of its type) for a variant. An empty std::optional is
/// left out.
template <class Visit>
class LeafVisitor {
 public:
  explicit LeafVisitor(const Visit& visit) : visit_(visit) {}

  template <class T>
  void operator()(const char* name, T& field, const Constraint&, const char*) {
    add(prefix_.empty() ? name : prefix_ + "." + name, field);
  }

 private:
  template <class T>
  void add(const std::string& key, T& field) {
    if constexpr (std::is_same_v<T, std::string> || std::is_arithmetic_v<T> || std::is_enum_v<T>)
      visit_(key, field);
    else
      add_composite(key, field);
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
          visit_(key, config.type_name);
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

  const Visit& visit_;
  std::string prefix_;
};

/// Calls visit(key, value) as LeafVisitor does.
template <class Config, class Visit>
void visit_leaves(Config& config, const Visit& visit) {
  LeafVisitor<Visit> visitor(visit);
  describe(visitor, config);
}

using Settings = std::map<std::string, std::string>;  // "optimizer.beta1" -> "0.9"

/// All leaves of the configuration as text, by their keys.
template <class Config>
Settings settings_of(Config config) {
  Settings settings;
  visit_leaves(config, [&](const std::string& key, const auto& value) {
    if constexpr (std::is_enum_v<std::decay_t<decltype(value)>>)
      settings[key] = enum_name(value);
    else
      settings[key] = fmt::format("{}", value);
  });
  return settings;
}

}  // namespace capstan
