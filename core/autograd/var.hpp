// A value that may carry a gradient. B batch, T time (length), D width, H heads, V vocabulary throughout the project.
#pragma once

#include <memory>

#include "core/array/array.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Collects the gradient of one value. Records of the tape and Vars share it; it holds no value, so that a value lives
/// only as long as it is used or a pullback has saved it.
struct GradSlot {
  Shape shape;
  bool has_grad = false;
  bool in_place = false;  // `grad` is a slice of a flat block: gradients are added into it and it is never replaced
  Array grad;
};

/// Value plus gradient slot, shared by all copies. No parents and no closures inside: the tape keeps the history.
class Var {
 public:
  Var() = default;               // undefined
  explicit Var(Array value);     // a constant
  static Var leaf(Array value);  // collects a gradient

  explicit operator bool() const { return node_ != nullptr; }
  const Array& value() const { return node_->value; }
  const Shape& shape() const { return node_->value.shape(); }
  int rank() const { return node_->value.rank(); }
  int64_t dim(int axis) const { return node_->value.dim(axis); }
  int64_t size() const { return node_->value.size(); }

  /// False for an undefined Var: an op may get one as an optional input.
  bool needs_grad() const { return node_ != nullptr && node_->slot != nullptr; }
  bool has_grad() const { return needs_grad() && node_->slot->has_grad; }
  /// Throws std::logic_error when no gradient has arrived.
  const Array& grad() const;
  /// Forgets the gradient; zeroes it where it is a slice of a flat block.
  void clear_grad() const;
  std::shared_ptr<GradSlot> slot() const { return node_ != nullptr ? node_->slot : nullptr; }

  /// For ParamStore: moves value and gradient of a leaf into slices of flat blocks, for all copies of this Var.
  void bind(Array value, Array grad) const;
  /// For a leaf outside a store: another value of the same shape,
  /// for all copies. Throws std::invalid_argument otherwise.
  void assign(Array value) const;
  /// The value rounded for matrix products (nn/params/bf16_weights.hpp),
  /// for all copies of this Var; empty where there is none.
  const Bf16Array& bf16() const { return node_->bf16; }
  void set_bf16(Bf16Array rounded) const { node_->bf16 = std::move(rounded); }
  /// Do both handles name the same value?
  bool same(const Var& other) const { return node_ == other.node_; }

 private:
  friend class Tape;
  struct Node {
    Array value;
    std::shared_ptr<GradSlot> slot;  // null: no gradient wanted
    Bf16Array bf16 = Bf16Array();
  };
  std::shared_ptr<Node> node_;
};

}  // namespace capstan::CAPSTAN_PRECISION
