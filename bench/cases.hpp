// What bench_kernels (kernels.cpp) times, beside the least it could cost: kernels are in kernel_cases.cpp, operations
// in op_cases.cpp. Names are compared with those of earlier tables, so a case that changes gets another name.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/autograd/tape.hpp"

namespace capstan::bench {

/// The least traffic and arithmetic of one call: every operand read once and every result written once, no matter what
/// an implementation reads again.
struct Cost {
  double bytes = 0, flops = 0;
};

/// A call of a kernel, timed as it is: `run` does it once, on operands that are there already.
struct KernelCase {
  std::string name;
  Cost cost;
  std::function<void()> run;
};

/// An op, timed forward, and forward and backward. Its traffic follows from its operands.
struct OpCase {
  std::string name;
  std::vector<Var> inputs;  // leaves
  std::function<Var(const std::vector<Var>&)> op;
  double flops = 0;  // forward products; three times that with backward
};

/// Shapes are those of the small model, B = 8, T = 512, D = 256.
std::vector<KernelCase> kernel_cases();
std::vector<OpCase> op_cases();

/// Normal numbers times `scale`, the same in every run.
Array normal_array(const Shape& shape, double scale = 1);

}  // namespace capstan::bench
