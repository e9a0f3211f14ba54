// Var and its gradient slot: a slot is an array of its own, a part of a GradBlock, or the read rows of a table.
// tests/core/autograd/test_tape.cpp.
#include "core/autograd/var.hpp"

#include <stdexcept>

#include "core/base/error.hpp"
#include "core/kernels/elementwise.hpp"

namespace capstan::CAPSTAN_PRECISION {

Var::Var(Array value) : node_(std::make_shared<Node>(Node{std::move(value), nullptr})) {}

Var Var::leaf(Array value) {
  Var var(std::move(value));
  var.node_->slot = std::make_shared<GradSlot>();
  var.node_->slot->shape = var.shape();
  return var;
}

Array Var::grad() const {
  if (!has_grad()) throw std::logic_error("var: no gradient computed for shape " + to_string(shape()));
  const GradSlot& slot = *node_->slot;
  if (slot.table < 0) return slot.grad;
  const RowGrads& rows = slot.rows();
  Array whole = Array::zeros(shape());
  for (int64_t i = 0; i < rows.count(); ++i)
    kernels::copy(whole.mutable_data() + rows.rows()[static_cast<size_t>(i)] * dim(1),
                  rows.values().data() + i * dim(1), dim(1));
  return whole;
}

void Var::clear_grad() const {
  GradSlot& slot = *node_->slot;
  if (slot.table >= 0) {
    slot.rows().clear();
  } else if (slot.in_place()) {
    kernels::fill(slot.place(), slot.shape.size(), real{0});
  } else {
    slot.grad = Array();
    slot.has_grad = false;
  }
}

void Var::bind(Array value, GradBlock& block, int64_t offset, int64_t table) const {
  check(value.shape() == shape(), "var: cannot bind {} to shape {}", value.shape(), shape());
  node_->value = std::move(value);
  GradSlot& slot = *node_->slot;
  slot.grad = table < 0 ? block.dense().view(offset, shape()) : Array();
  slot.block = &block;
  slot.offset = offset;
  slot.table = table;
  slot.has_grad = true;
}

void Var::assign(Array value) const {
  check(value.shape() == shape(), "var: cannot assign {} to shape {}", value.shape(), shape());
  if (node_->slot != nullptr && node_->slot->block != nullptr) {
    kernels::copy(node_->value.shared_data(), value.data(), value.size());
  } else {
    node_->value = std::move(value);
  }
}

}  // namespace capstan::CAPSTAN_PRECISION
