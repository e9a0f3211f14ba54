// Holds the gradients of a module against finite differences.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "core/autograd/gradcheck.hpp"
#include "tests/nn/mixer/mixer_suite.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

using Module = std::function<Var(const Var&)>;

/// Redraws the weights and checks all gradients of module(x).
inline void check_differences(const std::string& name, ParamStore& store, const Shape& shape, const Module& module,
                              const GradcheckOptions& options) {
  redraw(store);
  const Var x = Var::leaf(normal_array(shape, 3));
  std::vector<std::pair<std::string, Var>> leaves{{"x", x}};
  for (const Param& param : store.params()) leaves.emplace_back(param.name, param.var);
  const GradcheckReport report = gradcheck([&] { return module(x); }, leaves, options);
  CHECK_MESSAGE(report.ok, name, ": ", report.worst);
}

/// The same; no parameter may be left without a gradient.
inline void check_gradients(const std::string& name, ParamStore& store, const Shape& shape, const Module& module,
                            int64_t samples = 20) {
  GradcheckOptions options;
  options.samples = samples;
  check_differences(name, store, shape, module, options);
  const Var x = Var::leaf(normal_array(shape, 3));
  TapeScope scope;
  const Var y = module(x);
  scope.tape().backward(std::vector<Var>{y}, {normal_array(y.shape(), 4)});
  for (const Param& param : store.params()) {
    const bool reached =
        param.var.has_grad() && relative_error(param.var.grad(), Array::zeros(param.var.shape()), 1) > 0;
    CHECK_MESSAGE(reached, name, ": nothing reaches ", param.name);
  }
}

/// Gradients of a mixer, causal and not, on texts in these segments. Where all have one token, some parameters have no
/// gradient: one token is all that it sees.
inline void check_mixer_gradients(const MixerCase& c, const Segments& segments, int64_t samples,
                                  double floor = GradcheckOptions{}.floor) {
  for (const bool causal : {true, false}) {
    const std::string name = c.name + (causal ? ", causal" : ", bidirectional");
    const auto built = built_mixer(c, causal, std::max<int64_t>(segments.length(), 3));
    const Shape shape{segments.batch(), segments.length(), width};
    const Module module = [&](const Var& x) { return built.module->forward(x, {segments}); };
    GradcheckOptions options;
    options.samples = samples;
    options.floor = floor;
    if (segments.length() > 1)
      check_gradients(name, *built.store, shape, module, samples);
    else
      check_differences(name, *built.store, shape, module, options);
  }
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
