#include "softplus.hpp"

#include "core/array/array_xt.hpp"
#include "core/autograd/tape.hpp"

namespace capstan::CAPSTAN_PRECISION {

Var softplus(const Var& x) {
  // log(1 + e^x) = max(x, 0) + log(1 + e^-|x|): the exponent is never positive, so nothing overflows.
  const auto input = as_xarray(x.value());
  const Array y = make_array<real>(xt::maximum(input, real{0}) + xt::log1p(xt::exp(-xt::abs(input))));

  // make_var is the only way to make a value with a history. The pullback gets the gradient of the output and returns
  // one gradient per input. It keeps the array that it needs, not the Var: a tape that held its own values would keep
  // all of them alive.
  return make_var("softplus", y, {x}, [saved = x.value()](const Array& g, const Needs&) -> Grads {
    return {make_array<real>(as_xarray(g) / (1 + xt::exp(-as_xarray(saved))))};
  });
}

}  // namespace capstan::CAPSTAN_PRECISION
