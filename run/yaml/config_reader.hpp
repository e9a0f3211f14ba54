// Tree to config struct: checks every value and collects every problem, so that one message names them all. Called by
// read_config() (config.hpp). A field of a new type needs a branch in read_value(), to_node() and type_text().
// tests/run/yaml/test_config_errors.cpp holds the messages.
#pragma once

#include "run/yaml/config_node.hpp"
#include "run/yaml/config_types.hpp"
#include "run/yaml/config_writer.hpp"

namespace capstan {

/// The part of the tree being read: its key path, the place to name in a message, and where messages go.
struct Location {
  std::string path;
  Place place;  // of the nearest enclosing value that was given, if this one is a default
  ProblemList& problems;

  void fail(const std::string& message) const { problems.add(place, path, message); }
  Location child(std::string_view key, const ConfigNode& node) const {
    return {join_path(path, key), node.place.given() ? node.place : place, problems};
  }
};

/// "must be given: expected WHAT" for a default, "expected WHAT, got VALUE" for anything else, and a hint after it.
void fail_expected(const ConfigNode& node, const Location& location, const std::string& what,
                   const std::string& hint = "");

/// Whether a number, or a length, is within the limits. NaN is not.
bool in_range(const Constraint& constraint, double value);
/// A constraint in words: "greater than 0", "at least 0 and below 1", "one of (adamw, sgd)"; empty if there is none.
std::string limits_text(const Constraint& constraint);
/// limits_text() for text and lists, whose limits are those of their length.
std::string length_limits_text(const Constraint& constraint);

void read_scalar(const ConfigNode& node, const Location& location, const Constraint& constraint, bool& value);
void read_scalar(const ConfigNode& node, const Location& location, const Constraint& constraint, std::int64_t& value);
void read_scalar(const ConfigNode& node, const Location& location, const Constraint& constraint, double& value);
void read_scalar(const ConfigNode& node, const Location& location, const Constraint& constraint, std::string& value);

/// Which of `choices` the node names.
std::optional<std::size_t> read_choice(const ConfigNode& node, const Location& location,
                                       const std::vector<std::string>& choices);

/// Which type a variant's node names, by itself or by its key `type`; `current` if it has no such key.
std::optional<std::string> read_type(const ConfigNode& node, const Location& location,
                                     const std::vector<std::string>& names, const char* current);

/// The elements of a list, a scalar counting as a list of one where `scalar_allowed`; nullopt if the node is neither or
/// the count breaks the constraint.
std::optional<std::vector<ConfigNode>> read_elements(const ConfigNode& node, const Location& location,
                                                     const Constraint& constraint, bool scalar_allowed);

/// The part of a constraint that concerns each element of a list: choices and emptiness. Limits concern the length.
Constraint element_constraint(const Constraint& list);

/// Problems at places found by their path below a node.
class ProblemsBelow final : public Problems {
 public:
  ProblemsBelow(const ConfigNode& node, const Location& location) : node_(node), location_(location) {}
  void add(const std::string& path, const std::string& message) override;

 private:
  const ConfigNode& node_;
  const Location& location_;
};

template <class T>
void read_value(const ConfigNode& node, const Location& location, const Constraint& constraint, T& value);

/// The visitor that reads the fields of a struct from a map.
class FieldReader {
 public:
  /// `type` is the struct's name as a variant's alternative, or nullptr; `types` are the names of all alternatives.
  FieldReader(const ConfigNode& map, const Location& location, const char* type, std::vector<std::string> types)
      : map_(map), location_(location), type_(type), types_(std::move(types)) {
    if (type) known_.emplace_back("type");
  }

  template <class T>
  void operator()(const char* name, T& field, const Constraint& constraint, const char*) {
    known_.emplace_back(name);
    const ConfigNode* node = map_.find(name);
    if (node && !is_void(*node)) {
      read_value(*node, location_.child(name, *node), constraint, field);
    } else {  // the default must satisfy the constraint, too
      const ConfigNode node_of_default = to_node(field);
      read_value(node_of_default, location_.child(name, node_of_default), constraint, field);
    }
  }

  void report_unknown_keys() const;

 private:
  /// Whether a key was given for a type that this variant had before.
  bool is_void(const ConfigNode& child) const { return type_ && child.of_other_type; }

  const ConfigNode& map_;
  const Location& location_;
  const char* type_;
  std::vector<std::string> types_, known_;
};

template <class T>
void read_struct(const ConfigNode& map, const Location& location, T& value, const char* type = nullptr,
                 const std::vector<std::string>& types = {}) {
  const std::size_t problems_before = location.problems.size();
  FieldReader reader(map, location, type, types);
  describe(reader, value);
  reader.report_unknown_keys();
  if constexpr (HasValidate<T>::value) {
    if (location.problems.size() == problems_before) {  // otherwise it would check defaults in place of wrong values
      ProblemsBelow problems(map, location);
      validate(static_cast<const T&>(value), problems);
    }
  }
}

/// Makes the alternative of this name the current one, with its defaults.
template <class... Ts>
void emplace_alternative(std::variant<Ts...>& value, const std::string& name) {
  const auto emplaced = [&](auto* none) {
    using T = std::remove_pointer_t<decltype(none)>;
    for (const std::string& own : names_of_alternative<T>()) {
      if (own != name) continue;
      if constexpr (ListsTypes<T>::value)
        value.template emplace<T>(name);
      else
        value.template emplace<T>();
      return true;
    }
    return false;
  };
  (void)(emplaced(static_cast<Ts*>(nullptr)) || ...);
}

template <class T>
void read_variant(const ConfigNode& node, const Location& location, T& value) {
  const char* const current = std::visit([](const auto& alternative) { return alternative.type_name; }, value);
  const std::vector<std::string> types = type_names(&value);
  const auto chosen = read_type(node, location, types, current);
  if (!chosen) return;
  if (*chosen != current) emplace_alternative(value, *chosen);
  const ConfigNode name_only{NodeKind::map};
  const ConfigNode& map = node.kind == NodeKind::map ? node : name_only;
  std::visit([&](auto& alternative) { read_struct(map, location, alternative, alternative.type_name, types); }, value);
}

template <class T>
void read_list(const ConfigNode& node, const Location& location, const Constraint& constraint, std::vector<T>& value) {
  static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements to refer to");
  const auto elements = read_elements(node, location, constraint, std::is_same_v<T, std::string>);
  if (!elements) return;
  value.assign(elements->size(), T{});
  for (std::size_t i = 0; i < value.size(); ++i) {
    const ConfigNode& element = (*elements)[i];
    read_value(element, location.child(std::to_string(i), element), element_constraint(constraint), value[i]);
  }
}

template <class T>
void read_value(const ConfigNode& node, const Location& location, const Constraint& constraint, T& value) {
  if constexpr (is_scalar_field<T>) {
    read_scalar(node, location, constraint, value);
  } else if constexpr (std::is_enum_v<T>) {
    if (const auto chosen = read_choice(node, location, choices_of_enum<T>())) value = enum_names(T{})[*chosen].value;
  } else if constexpr (IsOptional<T>::value) {
    auto inner = value.value_or(typename T::value_type{});
    value.reset();
    if (node.kind == NodeKind::null) return;
    read_value(node, location, constraint, inner);
    value = std::move(inner);
  } else if constexpr (IsVector<T>::value) {
    read_list(node, location, constraint, value);
  } else if constexpr (IsVariant<T>::value) {
    read_variant(node, location, value);
  } else {
    static_assert(std::is_class_v<T>,
                  "a field is bool, int64_t, double, string, an enum, optional, vector, variant or struct");
    if (node.kind == NodeKind::map)
      read_struct(node, location, value);
    else
      fail_expected(node, location, "a map of keys", colon_hint(node));
  }
}

}  // namespace capstan
