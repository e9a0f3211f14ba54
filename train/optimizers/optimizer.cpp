#include "train/optimizers/optimizer.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/kernels/optimizer.hpp"
#include "core/machine/profile.hpp"

namespace capstan {
namespace {

template <class... Cases>
struct overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
overloaded(Cases...) -> overloaded<Cases...>;

/// The rows of the store's tables that have a gradient.
std::vector<kernels::TableRows> touched_rows(const ParamStore& params) {
  std::vector<kernels::TableRows> tables;
  for (const Param& param : params.params()) {
    if (param.touched == nullptr) continue;
    const std::vector<int64_t>& rows = param.touched->rows();
    tables.push_back(
        {param.offset, param.var.dim(1), rows.data(), static_cast<int64_t>(rows.size()), param.options.decay});
  }
  return tables;
}

/// What a pass over so many blocks moves.
int64_t bytes_of_blocks(const ParamStore& params, size_t blocks) {
  int64_t numbers = params.dense_size();
  for (const kernels::TableRows& table : touched_rows(params)) numbers += table.count * table.width;
  return numbers * static_cast<int64_t>(blocks * sizeof(real));
}

}  // namespace

Optimizer::Optimizer(const OptimizerConfig& config, const ParamStore& params) : config_(config) {
  check(params.finalized(), "optimizer: the parameter store is not finalized");
  const auto add = [&](const char* name) { states_.push_back({name, Array::zeros(Shape{params.flat_size()})}); };
  std::visit(overloaded{[&](const AdamWConfig&) {
                          add("first_moment");
                          add("second_moment");
                        },
                        [&](const SgdConfig&) { add("momentum"); }, [&](const LionConfig&) { add("momentum"); }},
             config_);
}

void Optimizer::step(ParamStore& params, double grad_scale, double lr) {
  // Values, gradients (set to 0) and states are read and written.
  const ProfileSpan span("optimizer", Pass::none, bytes_of_blocks(params, 4 + 2 * states_.size()));
  ++steps_;
  const std::vector<kernels::TableRows> tables = touched_rows(params);
  const kernels::UpdateBlocks blocks{params.values(),
                                     params.grads(),
                                     params.dense_size(),
                                     params.decay_size(),
                                     grad_scale,
                                     tables.data(),
                                     static_cast<int64_t>(tables.size())};
  const auto state = [&](size_t index) { return states_[index].block.shared_data(); };
  std::visit(
      overloaded{
          [&](const AdamWConfig& c) {
            kernels::adamw(blocks, state(0), state(1), {lr, c.beta1, c.beta2, c.epsilon, c.weight_decay, steps_});
          },
          [&](const SgdConfig& c) {
            kernels::sgd(blocks, state(0), {lr, c.momentum, c.weight_decay, c.nesterov});
          },
          [&](const LionConfig& c) {
            kernels::lion(blocks, state(0), {lr, c.beta1, c.beta2, c.weight_decay});
          }},
      config_);
  params.grads_are_zero();
}

double gradient_norm(const ParamStore& params, double grad_scale) {
  const ProfileSpan span("gradient norm", Pass::none, bytes_of_blocks(params, 1));
  double squares = kernels::sum_of_squares(params.grads(), params.dense_size());
  for (const kernels::TableRows& table : touched_rows(params))
    squares += kernels::sum_of_squares(params.grads(), table);
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
