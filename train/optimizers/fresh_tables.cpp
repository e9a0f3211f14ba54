#include "train/optimizers/fresh_tables.hpp"

#include <algorithm>

namespace capstan {

bool has_fresh_tables(const ParamStore& params) {
  return std::any_of(params.params().begin(), params.params().end(),
                     [](const Param& param) { return param.options.fresh_each_epoch; });
}

void empty_fresh_tables(ParamStore& params, Optimizer& optimizer, WeightAverage* average) {
  for (const Param& param : params.params()) {
    if (!param.options.fresh_each_epoch) continue;
    const auto clear = [&](real* values) { std::fill_n(values, param.var.size(), real{0}); };
    clear(params.values() + param.offset);
    for (OptimizerState& state : optimizer.states())
      if (real* const values = state.of(param)) clear(values);
    if (average != nullptr) clear(average->block() + param.offset);
  }
}

}  // namespace capstan
