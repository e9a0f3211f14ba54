// Arithmetic with sizes; where a configuration or a file decides them, it throws instead of wrapping around. Called
// where shapes, parameters and files are measured. tests/core/base/test_sizes.cpp holds the messages.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace capstan {

/// The most elements that an array may have: their bytes, at up to 8 bytes each, still fit into int64_t. No machine has
/// as much memory.
constexpr int64_t max_elements = int64_t{1} << 59;

/// The smallest multiple of `multiple` (positive) that is at least `value` (not negative).
template <class T>
constexpr T round_up(T value, T multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// The product of sizes that are not negative. Throws Error naming `what` and the factors where it is above `most`.
int64_t checked_product(const char* what, std::initializer_list<int64_t> factors, int64_t most = max_elements);
/// The sum of sizes that are not negative. Throws Error naming `what` and the terms where it is above `most`.
int64_t checked_sum(const char* what, std::initializer_list<int64_t> terms, int64_t most = max_elements);

}  // namespace capstan
