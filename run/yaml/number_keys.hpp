// The numbers of a configuration with their keys, to be read and changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/config/schema.hpp"
#include "run/yaml/config_types.hpp"

namespace capstan {

/// A number in a struct, which must outlive it.
struct NumberKey {
  std::string path;  // "model.layers.0.mixer.window"
  std::variant<std::int64_t*, double*> value;
};

/// Visitor over describe() that lists the numbers that there are.
class NumberKeys {
 public:
  template <class T>
  void operator()(const char* name, T& field, const Constraint&, const char*) {
    add(path_.empty() ? name : path_ + "." + name, field);
  }
  std::vector<NumberKey> take() { return std::move(keys_); }

 private:
  template <class T>
  void add(const std::string& path, T& field) {
    if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, double>) {
      keys_.push_back({path, &field});
    } else if constexpr (is_scalar_field<T> || std::is_enum_v<T>) {
      return;
    } else if constexpr (IsOptional<T>::value) {
      if (field) add(path, *field);
    } else if constexpr (IsVector<T>::value) {
      for (size_t i = 0; i < field.size(); ++i) add(path + "." + std::to_string(i), field[i]);
    } else if constexpr (IsVariant<T>::value) {
      std::visit([&](auto& config) { add(path, config); }, field);
    } else {
      const std::string outer = std::exchange(path_, path);
      describe(*this, field);
      path_ = outer;
    }
  }

  std::string path_;
  std::vector<NumberKey> keys_;
};

template <class Config>
std::vector<NumberKey> number_keys(Config& config) {
  NumberKeys keys;
  describe(keys, config);
  return keys.take();
}

}  // namespace capstan
