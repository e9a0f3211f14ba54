// A contiguous row-major block of elements: the values of Vars, batches, parameters and decode states in every room.
// Light: does not include xtensor (core/array/array_xt.hpp does). tests/core/array/test_array.cpp holds who may write.
#pragma once

#include <cstdint>
#include <vector>

#include "core/array/shape.hpp"
#include "core/base/bf16.hpp"
#include "core/base/real.hpp"
#include "core/machine/pool.hpp"

namespace capstan {

/// Shape plus shared buffer; cheap to copy. Arrays are immutable once their maker has returned: writing needs the only
/// handle on the buffer. `reshape`, `rows` and `view` share the buffer. Any thread may read; the count of handles is
/// atomic.
/// Explicitly instantiated for float, double, int32_t and Bf16.
template <class T>
class ArrayOf {
 public:
  using value_type = T;

  ArrayOf() : shape_{0} {}               // no elements, no buffer
  explicit ArrayOf(const Shape& shape);  // uninitialised
  ArrayOf(const Shape& shape, T value);  // filled
  /// Throws std::invalid_argument when the count is not shape.size().
  ArrayOf(const Shape& shape, const std::vector<T>& values);

  static ArrayOf zeros(const Shape& shape) { return ArrayOf(shape, T{0}); }
  /// A shape without elements: only shape(), size() and the like may be asked. For counting what a model would need.
  static ArrayOf shape_only(const Shape& shape) { return ArrayOf(Buffer(), nullptr, shape); }
  static ArrayOf scalar(T value) { return ArrayOf(Shape{}, value); }

  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int axis) const { return shape_[axis]; }
  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  const T* data() const { return data_; }
  T operator[](int64_t index) const { return data_[index]; }
  /// The value of an array of one element. Throws std::invalid_argument otherwise.
  T item() const;
  std::vector<T> to_vector() const { return {data_, data_ + size_}; }

  /// Writable data. Throws std::logic_error when another handle shares the buffer.
  T* mutable_data();
  /// Writes through a shared buffer: only for the owner of a flat parameter or gradient block, whose slices are meant
  /// to change with it.
  T* shared_data() { return data_; }
  bool unique() const { return buffer_.unique(); }

  /// The same elements under another shape. Throws std::invalid_argument when the sizes differ.
  ArrayOf reshape(const Shape& shape) const;
  /// Entries [begin, end) of the first axis. Throws std::invalid_argument where the axis does not have them.
  ArrayOf rows(int64_t begin, int64_t end) const;
  /// Elements [offset, offset + shape.size()) of this array, as `shape`: how flat blocks are carved up. Throws
  /// std::invalid_argument where the array ends earlier.
  ArrayOf view(int64_t offset, const Shape& shape) const;
  ArrayOf clone() const;

 private:
  ArrayOf(Buffer buffer, T* data, const Shape& shape);

  Shape shape_;
  int64_t size_ = 0;
  Buffer buffer_;
  T* data_ = nullptr;
};

extern template class ArrayOf<float>;
extern template class ArrayOf<double>;
extern template class ArrayOf<int32_t>;
extern template class ArrayOf<Bf16>;

using Ids = ArrayOf<int32_t>;
using Bf16Array = ArrayOf<Bf16>;

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {
using Array = ArrayOf<real>;
}
