// All parameters of a model, by name, in flat blocks. Modules add to it through a Scope; optimizers, averaging,
// checkpoints, ranks, imports and exports see the store alone. Names are those of stored checkpoints
// (tests/cli/runs/test_old_runs.cpp). The order in which parameters are made decides the layout, and so the bits of the
// gradient's norm, which is summed over the flat block: tests/nn/params/test_params.cpp checks the layout.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/autograd/var.hpp"
#include "core/base/no_copy.hpp"
#include "nn/params/param_rules.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// What a module tells training of a parameter when it makes it.
struct ParamOptions {
  bool decay = true;  // does weight decay apply? (matrices yes; biases, gains and embeddings of positions no)
  // A large table of which a step uses few rows: only rows that have a gradient are updated. Its gradient must come
  // from ops whose pullbacks return RowGrads, such as embedding_bag.
  bool by_rows = false;
  // The table and its optimizer state are set to zero when an epoch ends (train/optimizers/optimizer.hpp).
  bool fresh_each_epoch = false;
  // A weight whose rows are independent: one per token, class or head.
  // Other decayed weights of rank 2 are matrices (is_matrix below).
  bool table = false;
  // The weight stacks several matrices to compute their products as one: the rows of each ({D, D, D}:
  // to_qkv). Empty: the weight is one matrix.
  std::vector<int64_t> stacked = {};
  // Treated as frozen: its values are measured on the data or solved for, not trained in steps.
  bool constant = false;
  // With ParamMemory::values, only its rows that are not zeros are kept (Var::packed).
  bool packs = false;
};

struct Param {
  std::string name;  // "blocks.3.mixer.to_qkv.weight"
  Var var;
  ParamOptions options;
  int64_t offset = 0;    // into the flat blocks, set by finalize(); -1: in none, for a table that packs
  int64_t table = -1;    // by_rows: which of the GradBlock's tables, set by finalize(); -1 for others
  bool frozen = false;   // a constant: no gradient, no optimizer state, no update
  double lr_factor = 1;  // its learning rate as a multiple of the optimizer's, set by finalize()
};

/// Is the parameter a linear map between vectors of features, which an optimizer may treat as a whole? True of decayed
/// weights of rank 2 with more than one row and column, except tables.
bool is_matrix(const Param& param);

/// What a store allocates. allocated: values and gradients, for training. values: no gradients and no drawn initial
/// values, for a model that is read from a file to be used. none: parameters have shapes but no elements; such a model
/// only tells what it would need, whatever its size.
enum class ParamMemory { allocated, values, none };

/// Parameters are made through a Scope only, which adds them here, so that each has a name and none is left out.
class ParamStore : NoCopy {
 public:
  explicit ParamStore(ParamMemory memory = ParamMemory::allocated, ParamRules rules = {})
      : memory_(memory), rules_(std::move(rules)) {}

  /// Adds a leaf with this initial value. Throws std::logic_error for a name that exists or after finalize(), and
  /// std::invalid_argument for options that do not fit its shape.
  Var add(const std::string& name, Array initial, const ParamOptions& options);
  bool has_memory() const { return memory_ != ParamMemory::none; }
  bool has_initial_values() const { return memory_ == ParamMemory::allocated; }
  /// Records that `name` is another name of the parameter called `target`. It is stored once. Throws Error where there
  /// is no such parameter.
  void alias(const std::string& name, const std::string& target);

  /// Moves all values and all gradients into two flat, 64-byte-aligned blocks: decayed parameters, the others, then
  /// tables that are updated by rows, whose gradients are RowGrads and in no block. Every parameter starts at a
  /// multiple of 64 bytes; the gaps stay zero. Frozen parameters come last and have no gradients. No parameter can be
  /// added afterwards. Throws std::logic_error when called twice, and Error or OutOfMemory for more than there is room.
  void finalize();
  bool finalized() const { return finalized_; }

  /// All parameters, in the order in which they were made.
  const std::vector<Param>& params() const { return params_; }
  /// The parameter of this name; null when there is none.
  const Param* known(const std::string& name) const;
  /// The parameter of this name. Throws Error naming the nearest known name when there is none.
  const Param& find(const std::string& name) const;
  /// Pairs (other name, name of the parameter), as alias() recorded them.
  const std::vector<std::pair<std::string, std::string>>& aliases() const { return aliases_; }
  /// The number of elements of all parameters, without the gaps between them in the flat block.
  int64_t count() const;
  const ParamRules& rules() const { return rules_; }

  /// The flat blocks: `flat_size()` values, `dense_size()` gradients. [0, decay_size()) are parameters with weight
  /// decay; tables that are updated by rows start at dense_size(), frozen parameters at trainable_size().
  int64_t flat_size() const { return values_.size(); }
  int64_t trainable_size() const { return trainable_size_; }
  int64_t dense_size() const { return dense_size_; }
  int64_t decay_size() const { return decay_size_; }
  real* values() { return values_.shared_data(); }
  const real* values() const { return values_.data(); }
  real* grads() { return grads_.data(); }
  const real* grads() const { return grads_.dense().data(); }
  GradBlock& grad_block() { return grads_; }
  const GradBlock& grad_block() const { return grads_; }
  /// The gradient of a parameter that is updated by rows.
  RowGrads& row_grads(const Param& param) { return grads_.tables()[static_cast<size_t>(param.table)]; }
  const RowGrads& row_grads(const Param& param) const { return grads_.tables()[static_cast<size_t>(param.table)]; }
  void clear_grads() { grads_.clear(); }

 private:
  std::vector<Param> params_;
  std::unordered_map<std::string, size_t> places_;  // in params_, by name
  std::vector<std::pair<std::string, std::string>> aliases_;
  Array values_;
  GradBlock grads_;
  ParamMemory memory_;
  ParamRules rules_;
  int64_t decay_size_ = 0, dense_size_ = 0, trainable_size_ = 0;
  bool finalized_ = false;
};

}  // namespace capstan::CAPSTAN_PRECISION
