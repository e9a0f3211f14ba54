// Ops whose weights have bf16 copies.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "core/autograd/tape.hpp"
#include "core/kernels/elementwise.hpp"
#include "tests/support/compare.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

inline Bf16Array rounded(const Array& x) {
  Bf16Array result(x.shape());
  kernels::round_to_bf16(result.mutable_data(), x.data(), x.size());
  return result;
}

/// x as bf16 holds it.
inline Array representable(const Array& x) {
  const Bf16Array bf16 = rounded(x);
  Array result(x.shape());
  std::transform(bf16.data(), bf16.data() + bf16.size(), result.mutable_data(), [](Bf16 of) { return to_float(of); });
  return result;
}

struct Bf16Case {
  std::string name;
  std::vector<Shape> inputs;    // those of weights are the matrices that products are made with
  std::vector<size_t> weights;  // which of them
  std::function<Var(const std::vector<Var>&)> op;
};

/// The value, then the gradient of every input.
inline std::vector<Array> results(const Bf16Case& c, bool bf16, Array (*prepare)(const Array&)) {
  std::vector<Var> inputs;
  for (size_t i = 0; i < c.inputs.size(); ++i) inputs.push_back(Var::leaf(prepare(normal_array(c.inputs[i], 10 + i))));
  if (bf16)
    for (const size_t i : c.weights) inputs[i].set_bf16(rounded(inputs[i].value()));
  TapeScope tape;
  const Var y = c.op(inputs);
  std::vector<Array> all{y.value()};
  tape.tape().backward({y}, {prepare(normal_array(y.shape(), 5))});
  for (const Var& input : inputs) all.push_back(input.grad());
  return all;
}

/// In bf16 values and gradients stay within 1 % of the largest entry, and are not those of float32.
inline void check_bf16(const Bf16Case& c) {
  const auto as_it_is = [](const Array& x) { return x; };
  const auto expected = results(c, false, as_it_is), got = results(c, true, as_it_is);
  double largest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error = relative_error(got[i], expected[i]);
    CHECK_MESSAGE(error < 0.01, c.name << (i == 0 ? ": value" : ": gradient ") << i << ": " << error);
    largest = std::max(largest, error);
  }
  CHECK_MESSAGE(largest > 1e-4, c.name << " was not done in bf16");
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
