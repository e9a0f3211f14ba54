// The numbers of a configuration with their keys, to be read and changed.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/config/settings.hpp"

namespace capstan {

/// A number in a struct, which must outlive it.
struct NumberKey {
  std::string path;  // "model.layers.0.mixer.window"
  std::variant<std::int64_t*, double*> value;
};

/// The numbers that there are.
template <class Config>
std::vector<NumberKey> number_keys(Config& config) {
  std::vector<NumberKey> keys;
  visit_leaves(config, [&keys](const std::string& path, auto& value) {
    using T = std::remove_reference_t<decltype(value)>;
    if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, double>) keys.push_back({path, &value});
  });
  return keys;
}

}  // namespace capstan
