// ArrayOf<T>: memory of the pool, views that share it, and the check that only a sole owner writes.
// tests/core/array/test_array.cpp.
#include "core/array/array.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "core/base/error.hpp"
#include "core/base/stop.hpp"

namespace capstan {

template <class T>
ArrayOf<T>::ArrayOf(const Shape& shape)
    : shape_(shape),
      size_(shape.size()),
      buffer_(static_cast<size_t>(size_) * sizeof(T)),
      data_(static_cast<T*>(buffer_.data())) {}

template <class T>
ArrayOf<T>::ArrayOf(const Shape& shape, T value) : ArrayOf(shape) {
  constexpr int64_t piece = int64_t{1} << 22;
  for (int64_t begin = 0; begin < size_; begin += piece) {
    if (begin > 0) stop_point();  // the system clears memory as it is first written: gigabytes of it take seconds
    std::fill_n(data_ + begin, std::min(piece, size_ - begin), value);
  }
}

template <class T>
ArrayOf<T>::ArrayOf(const Shape& shape, const std::vector<T>& values) : ArrayOf(shape) {
  check(static_cast<int64_t>(values.size()) == size_, "array: {} values for shape {}", values.size(), shape);
  std::copy(values.begin(), values.end(), data_);
}

template <class T>
ArrayOf<T>::ArrayOf(Buffer buffer, T* data, const Shape& shape)
    : shape_(shape), size_(shape.size()), buffer_(std::move(buffer)), data_(data) {}

template <class T>
T ArrayOf<T>::item() const {
  check(size_ == 1, "array: item() needs one element, got shape {}", shape_);
  return data_[0];
}

template <class T>
T* ArrayOf<T>::mutable_data() {
  if (!buffer_.unique()) throw std::logic_error("array: writing into a shared buffer of shape " + to_string(shape_));
  return data_;
}

template <class T>
ArrayOf<T> ArrayOf<T>::reshape(const Shape& shape) const {
  check(shape.size() == size_, "reshape: {} has {} elements, {} needs {}", shape_, size_, shape, shape.size());
  return ArrayOf(buffer_, data_, shape);
}

template <class T>
ArrayOf<T> ArrayOf<T>::rows(int64_t begin, int64_t end) const {
  check(rank() >= 1 && begin >= 0 && begin <= end && end <= dim(0), "rows: [{}, {}) is outside shape {}", begin, end,
        shape_);
  const int64_t stride = shape_.product(1, rank());
  return ArrayOf(buffer_, data_ + begin * stride, shape_.with(0, end - begin));
}

template <class T>
ArrayOf<T> ArrayOf<T>::view(int64_t offset, const Shape& shape) const {
  check(offset >= 0 && offset <= size_ && shape.size() <= size_ - offset, "view: {} elements at {} are outside {}",
        shape.size(), offset, shape_);
  return ArrayOf(buffer_, data_ + offset, shape);
}

template <class T>
ArrayOf<T> ArrayOf<T>::clone() const {
  ArrayOf copy(shape_);
  if (size_ > 0) std::memcpy(copy.data_, data_, static_cast<size_t>(size_) * sizeof(T));
  return copy;
}

template class ArrayOf<float>;
template class ArrayOf<double>;
template class ArrayOf<int32_t>;
template class ArrayOf<Bf16>;

}  // namespace capstan
