#include "train/optimizers/fresh_tables.hpp"

#include <algorithm>

namespace capstan {

bool has_fresh_tables(const ParamStore& params) {
  return std::any_of(params.params().begin(), params.params().end(),
                     [](const Param& param) { return param.options.fresh_each_epoch && !param.frozen; });
}

void empty_fresh_tables(ParamStore& params, Optimizer& optimizer, WeightAverage* average) {
  for (const Param& param : params.params()) {
    if (!param.options.fresh_each_epoch || param.frozen) continue;
    std::fill_n(params.values() + param.offset, param.var.size(), real{0});
    const auto clear = [&](OptimizerState& state) {
      const ParamPart<real> part = state.of(param);
      std::fill_n(part.values, part.size(), real{0});
    };
    for (OptimizerState& state : optimizer.states()) clear(state);
    if (average != nullptr) clear(average->values());
  }
}

}  // namespace capstan
