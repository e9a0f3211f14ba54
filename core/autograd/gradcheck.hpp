// Do gradients agree with finite differences? For ops, modules and whole models, by the tests called gradcheck_*; meant
// for double. tests/core/ops/gradcheck_ops.cpp has a pullback that is wrong and must be found.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/autograd/tape.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Drawn values keep at least this distance from a point where the function has a kink.
struct Away {
  double point = 0;
  double distance = 0;
};

struct GradcheckOptions {
  double step = sizeof(real) == 8 ? 1e-5 : 1e-2;       // of the central difference
  double tolerance = sizeof(real) == 8 ? 1e-6 : 2e-2;  // of max |analytic - numeric| / max |numeric|, per tensor
  double floor = sizeof(real) == 8 ? 1e-9 : 1e-3;      // a difference below this passes: tensors whose gradient is 0
  double stddev = 0.5;                                 // of drawn values
  Away away = {};
  int64_t samples = 0;  // entries checked per tensor, a fixed random choice; 0: all
  uint64_t seed = 1;    // seeds values, projection, choice
};

struct GradcheckReport {
  bool ok = true;
  std::string worst;  // "input 0 [1,0,3]: analytic 0.1234, numeric 0.1301"
  double error = 0;   // the largest |analytic - numeric| / max |numeric| of any tensor
};

/// Compares the gradients of sum(R * f(inputs)), R fixed and random, with central differences, for every input. The
/// inputs are drawn from N(0, stddev^2), or given. A tensor passes when max |analytic - numeric| <= tolerance * max
/// |numeric|, or <= floor, or <= what rounding of the sum in double can make. An exception of f passes through.
GradcheckReport gradcheck(const std::function<Var(const std::vector<Var>&)>& f, const std::vector<Shape>& inputs,
                          const GradcheckOptions& options = {});
GradcheckReport gradcheck(const std::function<Var(const std::vector<Var>&)>& f, const std::vector<Array>& inputs,
                          const GradcheckOptions& options = {});
/// gradcheck() for a function of leaves that exist already (the parameters of a module and the inputs of the test).
/// They are perturbed in place and restored; the gradients they hold are lost.
GradcheckReport gradcheck(const std::function<Var()>& f, const std::vector<std::pair<std::string, Var>>& leaves,
                          const GradcheckOptions& options = {});

}  // namespace capstan::CAPSTAN_PRECISION
