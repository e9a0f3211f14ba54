// Updates of the flat parameter block, and their state: the list of optimizers, the norm of gradients. Training
// steps use it, checkpoints save it (the names of states are names of tensors). No result depends
// on threads or ranks: tests/train/test_optimizer.cpp, test_ranks.cpp; a resumed run goes on to the same bits:
// test_resume.cpp.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "core/array/array.hpp"
#include "nn/params/param_store.hpp"
#include "train/optimizers/custom_optimizer.hpp"
#include "train/optimizers/elementwise.hpp"
#include "train/optimizers/muon.hpp"
#include "train/optimizers/shares.hpp"

namespace capstan {

/// The optimizers a run can choose from: the one list of them.
///
/// An optimizer is a struct of its settings with
///   static constexpr const char* type_name;          the `type` in a configuration
///   static std::vector<StateSpec> states();          what it keeps between steps
///   void update(const Update&, std::vector<OptimizerState>& states) const;
/// and a describe() beside it. update() changes all values, sets all gradients to zero, and leaves rows without a
/// gradient alone in tables that are updated by rows. Optimizer, checkpoints, the configuration and its documentation
/// follow.
using OptimizerConfig = std::variant<AdamWConfig, SgdConfig, LionConfig, MuonConfig, CustomOptimizerConfig>;

/// The shares of `ranks` ranks in what this optimizer updates.
Shares shares_for(const OptimizerConfig& config, const ParamStore& params, int ranks);

/// One of the optimizers with its state.
class Optimizer {
 public:
  /// The store must be finalized. `owned`: the parts of its flat blocks that this rank updates, ascending; shares_for()
  /// gives parts that suit the optimizer.
  Optimizer(const OptimizerConfig& config, const ParamStore& params, const std::vector<Elements>& owned);
  /// Updates all parameters.
  Optimizer(const OptimizerConfig& config, const ParamStore& params)
      : Optimizer(config, params, {{0, params.flat_size()}}) {}

  /// One update of all owned parameters with their gradients times `grad_scale`; these gradients are zero afterwards.
  /// In tables that are updated by rows, a row without a gradient keeps its value and its state: it does not decay.
  /// `bf16`: training is in bf16.
  void step(ParamStore& params, double grad_scale, double lr, bool bf16 = false);

  /// Updates made so far.
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }

  /// The states, for checkpoints, in the order of the config's states().
  std::vector<OptimizerState>& states() { return states_; }
  const std::vector<OptimizerState>& states() const { return states_; }

 private:
  OptimizerConfig config_;
  std::vector<OptimizerState> states_;
  int64_t steps_ = 0;
};

/// For every piece that a rank owns, in the order of regions and pieces: the sum of the squares of its gradients.
std::vector<double> squares_of_pieces(const ParamStore& params, const Shares& shares, int rank);
/// Euclidean norm of all gradients times `grad_scale`, from the squares of all ranks. Finite exactly when all gradients
/// are. The same for any number of ranks: the squares of each region are added in the order of its pieces.
double gradient_norm(const Shares& shares, const std::vector<std::vector<double>>& squares, double grad_scale);
/// The norm of all gradients in a single process.
double gradient_norm(const ParamStore& params, double grad_scale);

/// Factor by which gradients of this norm are shortened so that their norm is at most `limit`; 1 when `limit` is 0.
double clip_factor(double norm, double limit);

/// Are there tables that are emptied after every epoch?
bool has_fresh_tables(const ParamStore& params);

/// Between two epochs: the values of parameters with ParamOptions::fresh_each_epoch become zero, which is what such a
/// table starts with, and so does what the optimizer remembers of them. In the second
/// reading of a text a table that remembers the first is always right, and a model that reads it learns to trust
/// it more than an unknown text deserves; a fresh table is as right as it will be there.
void empty_fresh_tables(ParamStore& params, Optimizer& optimizer);

}  // namespace capstan
