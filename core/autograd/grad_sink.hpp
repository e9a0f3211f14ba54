// Where a pullback puts the gradient of one input.
#pragma once

#include <utility>

#include "core/autograd/tape.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Wraps the three cases a fused pullback meets: the input's gradient is not wanted (data() is null), it is added to
/// the input's own block (beta() is 1), or it is written to a new array (beta() is 0, the content undefined before).
class GradSink {
 public:
  GradSink() = default;  // not wanted
  GradSink(const Needs& needs, size_t input, const Shape& shape) {
    if (!needs[input]) return;
    data_ = needs.block(input);
    in_place_ = data_ != nullptr;
    if (in_place_) return;
    array_ = Array(shape);
    data_ = array_.mutable_data();
  }
  explicit operator bool() const { return data_ != nullptr; }
  real* data() const { return data_; }
  real beta() const { return in_place_ ? real{1} : real{0}; }
  /// What the pullback returns to the tape for this input.
  Grad grad() {
    if (data_ == nullptr) return {};
    return in_place_ ? Grad::accumulated() : Grad(std::move(array_));
  }

 private:
  Array array_;
  real* data_ = nullptr;
  bool in_place_ = false;
};

}  // namespace capstan::CAPSTAN_PRECISION
