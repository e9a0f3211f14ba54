#include "nn/params/bf16_weights.hpp"

#include <stdexcept>
#include <type_traits>

#include "core/array/array.hpp"
#include "core/kernels/elementwise.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// A bf16 copy. A template, so that the call to the float kernel is not compiled where `real` is double.
template <class T>
Bf16Array rounded(const T* values, int64_t count) {
  Bf16Array copy(Shape{count});
  if constexpr (std::is_same_v<T, float>)
    kernels::round_to_bf16(copy.mutable_data(), values, count);
  else
    throw std::logic_error("bf16_weights: bf16 requires a float model");
  return copy;
}

}  // namespace

Bf16Weights::Bf16Weights(const ParamStore& params) : params_(params) {
  if (!params.finalized()) throw std::logic_error("bf16_weights: the parameters are not finalized");
  for (const Param& param : params.params())
    if (!param.var.bf16().empty()) throw std::logic_error("bf16_weights: " + param.name + " has a copy already");
  const Bf16Array block = rounded(params.values(), params.dense_size());
  for (const Param& param : params.params()) {
    if (param.options.by_rows) continue;
    param.var.set_bf16(param.frozen ? rounded(param.var.value().data(), param.var.size()).view(0, param.var.shape())
                                    : block.view(param.offset, param.var.shape()));
  }
}

Bf16Weights::~Bf16Weights() {
  for (const Param& param : params_.params()) param.var.set_bf16(Bf16Array());
}

}  // namespace capstan::CAPSTAN_PRECISION
