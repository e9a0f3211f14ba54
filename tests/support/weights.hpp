// Weights for tests.
#pragma once

#include "nn/params/param_store.hpp"
#include "tests/support/compare.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

/// Weights of sigma 0.5 (gains around 1): at a small initialisation any error hides. Before finalize().
inline void redraw(ParamStore& store, double stddev = 0.5) {
  for (const Param& param : store.params()) {
    const bool gain = param.name.size() > 5 && param.name.compare(param.name.size() - 5, 5, ".gain") == 0;
    Array value = normal_array(param.var.shape(), hash_path(param.name), stddev);
    if (gain)
      for (int64_t i = 0; i < value.size(); ++i) value.mutable_data()[i] += 1;
    param.var.assign(value);
  }
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
