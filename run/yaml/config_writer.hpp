// Config struct to tree, and tree to YAML text. A run's config.yaml is this text, which must read back to the same
// values: tests/run/yaml/test_config_write.cpp holds it for every field type.
#pragma once

#include "run/yaml/config_node.hpp"
#include "run/yaml/config_types.hpp"

namespace capstan {

/// The visitor that writes the fields of a struct into a map, in the order of describe().
class FieldWriter {
 public:
  template <class T>
  void operator()(const char* name, const T& field, const Constraint&, const char*);

  ConfigNode map{NodeKind::map};
};

template <class T>
ConfigNode to_node(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return scalar_node(value ? "true" : "false");
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return scalar_node(std::to_string(value));
  } else if constexpr (std::is_same_v<T, double>) {
    return scalar_node(format_number(value));
  } else if constexpr (std::is_same_v<T, std::string>) {
    return scalar_node(value, true);
  } else if constexpr (std::is_enum_v<T>) {
    return scalar_node(enum_name(value), true);
  } else if constexpr (IsOptional<T>::value) {
    return value ? to_node(*value) : ConfigNode{};
  } else if constexpr (IsVector<T>::value) {
    ConfigNode list{NodeKind::list};
    for (const auto& element : value) list.children.push_back(to_node(element));
    return list;
  } else if constexpr (IsVariant<T>::value) {
    return std::visit(
        [](const auto& alternative) {
          ConfigNode map = to_node(alternative), type = scalar_node(alternative.type_name, true);
          type.key = "type";
          map.is_variant = true;
          map.children.insert(map.children.begin(), std::move(type));
          return map;
        },
        value);
  } else {
    FieldWriter writer;
    T copy = value;  // describe() takes what a reader could write to
    describe(writer, copy);
    return std::move(writer.map);
  }
}

template <class T>
void FieldWriter::operator()(const char* name, const T& field, const Constraint&, const char*) {
  ConfigNode node = to_node(field);
  node.key = name;
  map.children.push_back(std::move(node));
}

/// A tree as a YAML document that parse_yaml() turns into the same tree.
std::string write_yaml(const ConfigNode& node);

/// The whole configuration as YAML; load_config() reads exactly the same values from it.
template <class C>
std::string to_yaml(const C& config) {
  return write_yaml(to_node(config));
}

/// The differences of two configurations, for instance those of a saved run and of the one that goes on with it.
template <class C>
std::vector<ConfigDifference> diff_configs(const C& a, const C& b) {
  return diff_trees(to_node(a), to_node(b));
}

}  // namespace capstan
