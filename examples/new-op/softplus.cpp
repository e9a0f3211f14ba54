#include "softplus.hpp"

#include "core/array/rows_xt.hpp"
#include "core/autograd/tape.hpp"

namespace capstan::CAPSTAN_PRECISION {

Var softplus(const Var& x) {
  // log(1 + e^x) = max(x, 0) + log(1 + e^-|x|): the exponent is never positive, so nothing overflows. Value and
  // gradient are xtensor expressions; elementwise() evaluates them on all threads.
  const auto value = [](const auto& v) { return xt::maximum(v, real(0)) + xt::log1p(xt::exp(-xt::abs(v))); };
  const auto slope = [](const auto& dy, const auto& v) { return dy / (real(1) + xt::exp(-v)); };

  // make_var is the only way to make a value with a history. The pullback gets the gradient of the output and returns
  // one gradient per input. It keeps the array that it needs, not the Var: a tape that held its own values would keep
  // all of them alive. Moving the gradient in lets the result be written over it.
  return make_var("softplus", elementwise("softplus", value, x.value()), {x},
                  [slope, saved = x.value()](Array g, const Needs&) -> Grads {
                    return {elementwise("softplus", slope, std::move(g), saved)};
                  });
}

}  // namespace capstan::CAPSTAN_PRECISION
