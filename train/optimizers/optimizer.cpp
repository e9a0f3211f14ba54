#include "train/optimizers/optimizer.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/kernels/optimizer.hpp"
#include "core/machine/profile.hpp"

namespace capstan {
namespace {

/// Elements that a pass over all parameters visits.
int64_t visited(const ParamStore& params, const std::vector<kernels::TableRows>& tables) {
  int64_t elements = params.dense_size();
  for (const kernels::TableRows& table : tables) elements += table.count * table.width;
  return elements;
}

/// Elements of a state that an update visits.
int64_t visited(const Update& update, const OptimizerState& state) {
  int64_t elements = 0;
  for_pieces(update, state, [&](const kernels::UpdateBlocks& blocks, int64_t) {
    elements += blocks.count;
    for (int64_t t = 0; t < blocks.table_count; ++t) elements += blocks.tables[t].count * blocks.tables[t].width;
  });
  return elements;
}

}  // namespace

Optimizer::Optimizer(const OptimizerConfig& config, const ParamStore& params) : config_(config) {
  check(params.finalized(), "optimizer: the parameter store is not finalized");
  const MemoryFor purpose("the optimizer's state");
  std::visit(
      [&](const auto& chosen) {
        for (const StateSpec& spec : chosen.states()) states_.emplace_back(spec, params);
      },
      config_);
}

void Optimizer::step(ParamStore& params, double grad_scale, double lr) {
  const Update update{params, grad_scale, lr, ++steps_, rows_with_gradient(params)};
  // Values, gradients (set to 0) and states are read and written.
  int64_t elements = 4 * visited(params, update.tables);
  for (const OptimizerState& state : states_) elements += 2 * visited(update, state);
  const ProfileSpan span("optimizer", Pass::none, elements * static_cast<int64_t>(sizeof(real)));
  std::visit([&](const auto& chosen) { chosen.update(update, states_); }, config_);
  for (RowGrads& table : params.grad_block().tables()) table.clear();
}

double gradient_norm(const ParamStore& params, double grad_scale) {
  const std::vector<kernels::TableRows> tables = rows_with_gradient(params);
  const ProfileSpan span("gradient norm", Pass::none, visited(params, tables) * static_cast<int64_t>(sizeof(real)));
  double squares = kernels::sum_of_squares(params.grads(), params.dense_size());
  for (const kernels::TableRows& table : tables) squares += kernels::sum_of_squares(table);
  return std::abs(grad_scale) * std::sqrt(squares);
}

double clip_factor(double norm, double limit) { return limit > 0 && norm > limit ? limit / norm : 1; }

WeightAverage::WeightAverage(double decay, const ParamStore& params)
    : decay_(decay), block_(Shape{params.flat_size()}) {
  std::copy_n(params.values(), params.flat_size(), block_.mutable_data());
}

void WeightAverage::update(const ParamStore& params, int64_t updates) {
  const ProfileSpan span("weight average", Pass::none, params.flat_size() * static_cast<int64_t>(3 * sizeof(real)));
  const double n = static_cast<double>(updates);
  kernels::moving_average(block_.shared_data(), params.values(), params.flat_size(),
                          std::min(decay_, (1 + n) / (10 + n)));
}

void WeightAverage::swap(ParamStore& params) {
  std::swap_ranges(block_.shared_data(), block_.shared_data() + block_.size(), params.values());
}

}  // namespace capstan
