// The shape of an Array: up to six extents, held inline, so that shapes are copied without an allocation. Every op
// checks its operands by them; tests/core/array/test_array.cpp holds the limits.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace capstan {

/// Extents of up to six axes, the slowest first.
class Shape {
 public:
  static constexpr int max_rank = 6;

  Shape() = default;  // rank 0: a scalar
  /// Throws std::invalid_argument for more than six extents or a negative one, and Error where their product, extents
  /// of 0 left out, is above max_elements (core/base/sizes.hpp): so no product of extents overflows.
  Shape(std::initializer_list<int64_t> extents);
  explicit Shape(const std::vector<int64_t>& extents);

  int rank() const { return rank_; }
  /// Extent of an axis; negative axes count from the end. Throws std::invalid_argument outside [-rank, rank).
  int64_t operator[](int axis) const { return extents_[static_cast<size_t>(normalize_axis(axis))]; }
  /// Number of elements; 1 for a scalar.
  int64_t size() const;
  /// The axis counted from the front. Throws std::invalid_argument outside [-rank, rank); the message begins with `op`.
  int normalize_axis(int axis, const char* op = "shape") const;

  const int64_t* begin() const { return extents_.data(); }
  const int64_t* end() const { return extents_.data() + rank_; }
  std::vector<int64_t> to_vector() const { return {begin(), end()}; }

  /// Product of the extents of axes [first, last).
  int64_t product(int first, int last) const;
  /// with(): this shape with another extent at `axis`, which may be negative. append(): one more axis at the end.
  Shape with(int axis, int64_t extent) const;
  Shape append(int64_t extent) const;
  /// The shape without axis `axis`.
  Shape without(int axis) const;

  friend bool operator==(const Shape& a, const Shape& b);
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  std::array<int64_t, max_rank> extents_{};
  int rank_ = 0;
};

/// "(8, 16, 32)".
std::string to_string(const Shape& shape);

/// The shape both broadcast to, as NumPy defines it. Throws std::invalid_argument naming `op` and both shapes.
Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op);

}  // namespace capstan

namespace fmt {
template <>
struct formatter<capstan::Shape> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  auto format(const capstan::Shape& shape, format_context& context) const {
    // Not fmt::format_to(): with fmt/core.h alone, clang finds no definition of what it calls in the library.
    const std::string text = capstan::to_string(shape);
    return std::copy(text.begin(), text.end(), context.out());
  }
};
}  // namespace fmt
