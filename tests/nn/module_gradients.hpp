// Holds the gradients of a module against finite differences.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "core/autograd/gradcheck.hpp"
#include "tests/nn/mixer/mixer_suite.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

using Module = std::function<Var(const Var&)>;

/// Redraws the weights and checks all gradients of module(x); no parameter may be left without one.
inline void check_gradients(const std::string& name, ParamStore& store, const Shape& shape, const Module& module,
                            int64_t samples = 20) {
  redraw(store);
  const Var x = Var::leaf(normal_array(shape, 3));
  GradcheckOptions options;
  options.samples = samples;
  std::vector<std::pair<std::string, Var>> leaves{{"x", x}};
  for (const Param& param : store.params()) leaves.emplace_back(param.name, param.var);
  TapeScope scope;
  const Var y = module(x);
  scope.tape().backward(std::vector<Var>{y}, {normal_array(y.shape(), 4)});
  for (const Param& param : store.params()) {
    const bool reached =
        param.var.has_grad() && relative_error(param.var.grad(), Array::zeros(param.var.shape()), 1) > 0;
    CHECK_MESSAGE(reached, name, ": nothing reaches ", param.name);
  }
  const GradcheckReport report = gradcheck([&] { return module(x); }, leaves, options);
  CHECK_MESSAGE(report.ok, name, ": ", report.worst);
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
