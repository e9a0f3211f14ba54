// Shapes: extents that are checked where they are made, so that products of them cannot overflow afterwards.
// tests/core/array/test_array.cpp.
#include "core/array/shape.hpp"

#include "core/base/error.hpp"
#include "core/base/sizes.hpp"

namespace capstan {
namespace {

[[noreturn]] void refuse_extents(const std::vector<int64_t>& extents) {
  std::string text;
  for (const int64_t extent : extents) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  throw Error(fmt::format("shape: ({}) has more elements than any machine has memory for: lower the sizes", text));
}

/// Copies the extents after checking them; returns their number.
template <class Range>
int copy_extents(const Range& extents, std::array<int64_t, Shape::max_rank>& out) {
  check(extents.size() <= Shape::max_rank, "shape: rank {} is above the limit of {}", extents.size(),
        static_cast<int>(Shape::max_rank));
  int64_t elements = 1;  // extents of 0 are left out, since with() may replace them
  for (const int64_t extent : extents) {
    check(extent >= 0, "shape: negative extent {}", extent);
    if (extent > 0 && (__builtin_mul_overflow(elements, extent, &elements) || elements > max_elements))
      refuse_extents(std::vector<int64_t>(extents.begin(), extents.end()));
  }
  std::copy(extents.begin(), extents.end(), out.begin());
  return static_cast<int>(extents.size());
}

}  // namespace

Shape::Shape(std::initializer_list<int64_t> extents) : rank_(copy_extents(extents, extents_)) {}
Shape::Shape(const std::vector<int64_t>& extents) : rank_(copy_extents(extents, extents_)) {}

int64_t Shape::size() const { return product(0, rank_); }

int Shape::normalize_axis(int axis, const char* op) const {
  check(axis >= -rank_ && axis < rank_, "{}: axis {} is outside shape {}", op, axis, *this);
  return axis < 0 ? axis + rank_ : axis;
}

int64_t Shape::product(int first, int last) const {
  int64_t elements = 1;
  for (int axis = first; axis < last; ++axis) elements *= extents_[static_cast<size_t>(axis)];
  return elements;
}

Shape Shape::with(int axis, int64_t extent) const {
  std::vector<int64_t> extents = to_vector();
  extents[static_cast<size_t>(normalize_axis(axis))] = extent;
  return Shape(extents);
}

Shape Shape::append(int64_t extent) const {
  std::vector<int64_t> extents = to_vector();
  extents.push_back(extent);
  return Shape(extents);
}

Shape Shape::without(int axis) const {
  std::vector<int64_t> extents = to_vector();
  extents.erase(extents.begin() + normalize_axis(axis));
  return Shape(extents);
}

bool operator==(const Shape& a, const Shape& b) {
  return a.rank_ == b.rank_ && std::equal(a.begin(), a.end(), b.begin());
}

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (const int64_t* extent = shape.begin(); extent != shape.end(); ++extent) {
    if (extent != shape.begin()) text += ", ";
    text += std::to_string(*extent);
  }
  return text + ")";
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op) {
  std::vector<int64_t> extents(static_cast<size_t>(std::max(a.rank(), b.rank())));
  for (int back = 1; back <= static_cast<int>(extents.size()); ++back) {
    const int64_t left = back <= a.rank() ? a[-back] : 1;
    const int64_t right = back <= b.rank() ? b[-back] : 1;
    check(left == right || left == 1 || right == 1, "{}: shapes {} and {} do not broadcast", op, a, b);
    extents[extents.size() - static_cast<size_t>(back)] = left == 1 ? right : left;
  }
  return Shape(extents);
}

}  // namespace capstan
