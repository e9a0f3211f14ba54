// A value that may carry a gradient: what ops take and give (core/ops, core/fused, nn/systems), and what parameters
// are. B batch, T time (length), D width, H heads, V vocabulary throughout the project. Threads may share the Vars of
// parameters: their values are constant during a step, and each thread adds gradients to its lane (LaneGrads).
#pragma once

#include <memory>

#include "core/array/row_index.hpp"
#include "core/autograd/grad_block.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Collects the gradient of one value. Records of the tape and Vars share it; it holds no value, so that a value lives
/// only as long as it is used or a pullback has saved it.
struct GradSlot {
  Shape shape;
  bool has_grad = false;
  Array grad;

  // A parameter's gradients are added up in the block of its store, or in that of the thread's lane, and `has_grad`
  // is true. `grad` is its slice of the store's block, or empty for a table that is updated by rows.
  GradBlock* block = nullptr;
  int64_t offset = 0;  // in the block's dense elements
  int64_t table = -1;  // which of the block's tables; -1: it is dense

  bool in_place() const { return block != nullptr && table < 0; }
  /// The slot's first element in the dense block of this thread.
  real* place() const { return LaneGrads::of(*block).data() + offset; }
  /// The row gradients of this thread.
  RowGrads& rows() const { return LaneGrads::of(*block).tables()[static_cast<size_t>(table)]; }
};

/// The rows of a table that are not zeros: row number `index.place_of(row)` of `rows`.
struct PackedTable {
  RowIndex index;
  Array rows;
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
  /// Throws std::logic_error when no gradient has arrived. Of a table that is updated by rows: a copy with all its
  /// rows.
  Array grad() const;
  /// Forgets the gradient; zeroes that of a parameter.
  void clear_grad() const;
  std::shared_ptr<GradSlot> slot() const { return node_ != nullptr ? node_->slot : nullptr; }

  /// For ParamStore: the value of a leaf becomes `value`, a slice of a flat block, and its gradients are added up in
  /// `block`, at `offset` of its dense elements, or as its table number `table` unless that is -1. For all copies of
  /// this Var. The block must outlive them.
  void bind(Array value, GradBlock& block, int64_t offset, int64_t table) const;
  /// Another value of the same shape, for all copies; that of a parameter is written into its block. Throws
  /// std::invalid_argument for another shape.
  void assign(Array value) const;
  /// The value rounded for matrix products (nn/params/param_store.hpp),
  /// for all copies of this Var; empty where there is none.
  const Bf16Array& bf16() const { return node_->bf16; }
  void set_bf16(Bf16Array rounded) const { node_->bf16 = std::move(rounded); }
  /// A table that was read to be used may have only the rows that are not zeros, and no value.
  const std::shared_ptr<const PackedTable>& packed() const { return node_->packed; }
  void set_packed(PackedTable table) const { node_->packed = std::make_shared<const PackedTable>(std::move(table)); }
  /// Do both handles name the same value?
  bool same(const Var& other) const { return node_ == other.node_; }

 private:
  friend class Tape;
  struct Node {
    Array value;
    std::shared_ptr<GradSlot> slot;  // null: no gradient wanted
    Bf16Array bf16 = Bf16Array();
    std::shared_ptr<const PackedTable> packed = nullptr;
  };
  std::shared_ptr<Node> node_;
};

}  // namespace capstan::CAPSTAN_PRECISION
