// The reference of all keys: rows made from the same describe() lists that read them. `capstan config table` prints
// them as Markdown, from which scripts/update-docs.sh makes docs/configuration.md, and `capstan config explain` shows
// one. tests/run/yaml/test_config_write.cpp holds the rows, tests/cli/test_configs.sh that the page is up to date.
#pragma once

#include "core/strings/strings.hpp"
#include "run/yaml/config_reader.hpp"

namespace capstan {

/// One key. Elements of a list of structs have N in their path, fields of a variant the type's name in brackets.
struct TableRow {
  std::string path, type, default_value, limits, help;
};

/// Markdown: key, values, default, meaning.
std::string markdown_table(const std::vector<TableRow>& rows);

/// The rows without repetitions: a struct whose keys are also those of an earlier key refers to that key, and a key
/// that several types of a variant share has one row, which names them all: `mixer(gau, flash).key_dim`. Where only
/// defaults differ, the row or the reference lists them.
std::vector<TableRow> shortened(const std::vector<TableRow>& rows);

/// The limits of a number, or of the length of a text or list, in few characters: "≥0", "1…100", "not empty". A bound
/// that only guards against overflow is none.
std::string range_text(const Constraint& constraint, bool of_length);

/// As --set accepts it, for the first entry of a list: "model.layers.N.mixer(flash).chunk" ->
/// "model.layers.0.mixer.chunk".
std::string settable_key(const std::string& path);

/// Type, default, limits and meaning of a key, given whole or by its last parts ("mixer.window"), with an example.
/// Throws ConfigError for an unknown one, with the nearest.
std::string explain_key(const std::vector<TableRow>& rows, const std::string& key);

/// The name of a field's type.
template <class T>
std::string type_text() {
  if constexpr (std::is_same_v<T, bool>) {
    return "boolean";
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return "integer";
  } else if constexpr (std::is_same_v<T, double>) {
    return "number";
  } else if constexpr (std::is_same_v<T, std::string>) {
    return "text";
  } else if constexpr (std::is_enum_v<T>) {
    return join(choices_of_enum<T>());
  } else if constexpr (IsOptional<T>::value) {
    return type_text<typename T::value_type>() + ", or null";
  } else if constexpr (IsVector<T>::value) {
    return "list: " + type_text<typename T::value_type>();
  } else if constexpr (IsVariant<T>::value) {
    return "type: " + join(type_names(static_cast<const T*>(nullptr)));
  } else {
    return "map";
  }
}

/// Visitor that makes a row per field; the rows of a nested struct follow that of its field.
class FieldTable {
 public:
  FieldTable(std::string path, std::vector<TableRow>& rows) : path_(std::move(path)), rows_(rows) {}

  template <class T>
  void operator()(const char* name, const T& field, const Constraint& constraint, const char* help) {
    const std::string path = join_path(path_, name);
    if constexpr (IsVariant<T>::value) {
      rows_.push_back({path, type_text<T>(), to_node(field).children.front().text, "", help});
    } else {
      ProblemList problems;
      T copy = field;
      read_value(to_node(field), Location{path, {}, problems}, constraint, copy);
      const bool required = problems.size() > 0 && type_text<T>() != "map";
      constexpr bool has_length = IsVector<T>::value || std::is_same_v<T, std::string>;
      const std::string type = constraint.choices.empty() ? type_text<T>() : join(constraint.choices);
      rows_.push_back(
          {path, type, required ? "must be given" : default_text(field), range_text(constraint, has_length), help});
    }
    add_inner(path, field);
  }

 private:
  template <class T>
  static std::string default_text(const T& field) {
    const ConfigNode node = to_node(field);
    return node.kind == NodeKind::map ? "" : write_flow(node);
  }

  /// Rows for the structs inside a field, if there are any.
  template <class T>
  void add_inner(const std::string& path, const T& field) {
    if constexpr (is_scalar_field<T> || std::is_enum_v<T>) {
      return;
    } else if constexpr (IsOptional<T>::value) {
      add_inner(path, field.value_or(typename T::value_type{}));
    } else if constexpr (IsVector<T>::value) {
      add_inner(path + ".N", typename T::value_type{});
    } else if constexpr (IsVariant<T>::value) {
      add_alternatives(path, field);
    } else {
      FieldTable inner(path, rows_);
      T copy = field;
      describe(inner, copy);
    }
  }

  template <class... Ts>
  void add_alternatives(const std::string& path, const std::variant<Ts...>& field) {
    const auto add_alternative = [&](auto* none) {
      using T = std::remove_pointer_t<decltype(none)>;
      if constexpr (!ListsTypes<T>::value)
        add_inner(path + "(" + T::type_name + ")", std::holds_alternative<T>(field) ? std::get<T>(field) : T{});
    };
    (add_alternative(static_cast<Ts*>(nullptr)), ...);
  }

  std::string path_;
  std::vector<TableRow>& rows_;
};

/// All keys of C.
template <class C>
std::vector<TableRow> config_rows(C defaults = {}) {
  std::vector<TableRow> rows;
  FieldTable table("", rows);
  describe(table, defaults);
  return rows;
}

}  // namespace capstan
