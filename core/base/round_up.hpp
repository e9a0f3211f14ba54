#pragma once

namespace capstan {

/// The smallest multiple of `multiple` (positive) that is at least `value` (not negative).
template <class T>
constexpr T round_up(T value, T multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace capstan
