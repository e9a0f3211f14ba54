// What an optimizer is made of: the state it keeps between steps, and what it is given for one update. For optimizers,
// those of programs included, and for checkpoints, which save states under their names. tests/train/test_optimizer.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/array/array.hpp"
#include "core/kernels/optimizer.hpp"
#include "nn/params/param_store.hpp"
#include "train/optimizers/shares.hpp"

namespace capstan {

/// A block that an optimizer keeps: one value for every element of the parameters that `holds` is true of.
struct StateSpec {
  const char* name;  // "first_moment"; in checkpoints the end of its tensors' names, so it must not change
  bool (*holds)(const Param&) = [](const Param&) { return true; };
  bool whole_matrices = false;  // update() needs all of a matrix at once: it is not shared by ranks
};

/// The part of a parameter that is kept here: its elements [begin, end).
template <class T>
struct ParamPart {
  T* values = nullptr;
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

/// The memory of one StateSpec, zero at first, for the parameters that this rank owns, frozen ones never. They have the
/// order and the alignment of the store's flat blocks: a state that holds all of them has the store's layout.
class OptimizerState {
 public:
  /// The store must be finalized. `owned`: parts of the flat blocks, ascending.
  OptimizerState(const StateSpec& spec, const ParamStore& params, const std::vector<Elements>& owned);
  /// All that the spec holds.
  OptimizerState(const StateSpec& spec, const ParamStore& params)
      : OptimizerState(spec, params, {{0, params.flat_size()}}) {}

  const std::string& name() const { return name_; }
  real* data() { return block_.shared_data(); }
  int64_t size() const { return block_.size(); }

  /// Elements [begin, end) of the store's flat blocks belong to held parameters; here they begin at `at`.
  struct Piece {
    int64_t begin, end, at;
    double lr_factor;  // of the learning rate, one for all elements of the piece
  };
  /// The pieces in ascending order; each is as long as possible.
  const std::vector<Piece>& pieces() const { return pieces_; }

  /// Does it hold the parameter, or would it on another rank?
  bool holds(const Param& param) const { return !param.frozen && holds_(param); }
  /// The part of a parameter that this rank keeps, in the layout of the parameter; empty if it keeps none.
  ParamPart<real> of(const Param& param);
  ParamPart<const real> of(const Param& param) const;

 private:
  std::string name_;
  bool (*holds_)(const Param&);
  Array block_;
  std::vector<Piece> pieces_;
};

/// One update of the parameters.
struct Update {
  ParamStore& params;
  double grad_scale;  // factor of all gradients
  double lr;
  int64_t step;  // from 1
  /// The rows that have a gradient, of tables updated by rows; offsets are into the store's flat blocks.
  std::vector<kernels::TableRows> tables;
  bool bf16;  // training is in bf16: so may be the products of an update
};

/// The rows that have a gradient, of the store's tables that are updated by rows.
std::vector<kernels::TableRows> rows_with_gradient(const ParamStore& params);

/// body(blocks, at, lr) for every piece of `state`: the piece as what a kernel updates, where it begins in the state,
/// and its learning rate.
template <class Body>
void for_pieces(const Update& update, const OptimizerState& state, const Body& body) {
  const int64_t dense = update.params.dense_size(), decayed = update.params.decay_size();
  for (const OptimizerState::Piece& piece : state.pieces()) {
    std::vector<kernels::TableRows> tables;
    for (kernels::TableRows table : update.tables) {
      // All rows with a gradient are in one piece, which may begin after the table does.
      const int64_t place = table.count > 0 ? table.offset + table.rows[0] * table.width : -1;
      if (place < piece.begin || place >= piece.end) continue;
      table.offset -= piece.begin;
      tables.push_back(table);
    }
    const auto within = [&](int64_t boundary) { return std::clamp(boundary, piece.begin, piece.end) - piece.begin; };
    real *const values = update.params.values() + piece.begin, *const grads = update.params.grads() + piece.begin;
    const kernels::UpdateBlocks blocks{values,
                                       grads,
                                       within(dense),
                                       within(decayed),
                                       update.grad_scale,
                                       tables.data(),
                                       static_cast<int64_t>(tables.size())};
    body(blocks, piece.at, update.lr * piece.lr_factor);
  }
}

}  // namespace capstan
