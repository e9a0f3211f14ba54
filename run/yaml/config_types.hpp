// Which kinds of field a config struct may have (core/config/schema.hpp), for the visitors over describe().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/config/schema.hpp"

namespace capstan {

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

template <class T>
struct IsVariant : std::false_type {};
template <class... Ts>
struct IsVariant<std::variant<Ts...>> : std::true_type {};

template <class T>
constexpr bool is_scalar_field = std::is_same_v<T, bool> || std::is_same_v<T, std::int64_t> ||
                                 std::is_same_v<T, double> || std::is_same_v<T, std::string>;

/// Whether an alternative of a variant stands for several types, such as all mixers that a program has registered.
template <class T, class = void>
struct ListsTypes : std::false_type {};
template <class T>
struct ListsTypes<T, std::void_t<decltype(T::type_names())>> : std::true_type {};

template <class T>
std::vector<std::string> names_of_alternative() {
  if constexpr (ListsTypes<T>::value)
    return T::type_names();
  else
    return {T::type_name};
}

/// The names of a variant's alternatives, in their order.
template <class... Ts>
std::vector<std::string> type_names(const std::variant<Ts...>*) {
  std::vector<std::string> names;
  for (const auto& own : {names_of_alternative<Ts>()...}) names.insert(names.end(), own.begin(), own.end());
  return names;
}

/// The spellings of an enum, in their order.
template <class E>
std::vector<std::string> choices_of_enum() {
  std::vector<std::string> names;
  for (const auto& entry : enum_names(E{})) names.emplace_back(entry.name);
  return names;
}

}  // namespace capstan
