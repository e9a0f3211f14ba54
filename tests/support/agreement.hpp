// Holds a fused op equal to the composition of primitives that defines it: value and every gradient, with gradients
// returned and accumulated in place, on one thread and on two.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/autograd/tape.hpp"
#include "core/base/random.hpp"
#include "tests/support/threads.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

using Op = std::function<Var(const std::vector<Var>&)>;

inline Array random_normal(const Shape& shape, uint64_t stream, double stddev = 0.5) {
  RandomStream random({20261121, stream});
  std::vector<real> values(static_cast<size_t>(shape.size()));
  for (real& value : values) value = static_cast<real>(stddev * random.normal());
  return Array(shape, values);
}

inline constexpr double tolerance = sizeof(real) == 8 ? 1e-11 : 1e-5;  // of the tensor's largest entry

/// Largest |a - b - shift| over the largest |b|; infinite when a shape or a value is not what it should be.
inline double distance(const Array& a, const Array& b, double shift = 0) {
  if (a.shape() != b.shape()) return INFINITY;
  double difference = 0, largest = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return INFINITY;
    difference = std::max(difference, std::abs(double{a[i]} - double{b[i]} - shift));
    largest = std::max(largest, std::abs(double{b[i]}));
  }
  return difference == 0 ? 0 : difference / largest;
}

/// What an op gives: its value, then the gradients of the inputs for a fixed random gradient of the output.
struct Run {
  Array value;
  std::vector<Array> grads;
};

inline constexpr double block_content = 0.25;  // what in-place gradient blocks hold beforehand

inline Run run(const Op& op, const std::vector<Array>& inputs, bool in_place) {
  std::vector<Var> leaves;
  std::vector<std::unique_ptr<GradBlock>> blocks;
  for (const Array& input : inputs) {
    leaves.push_back(Var::leaf(input));
    if (!in_place) continue;
    blocks.push_back(std::make_unique<GradBlock>(input.size(), 0));
    std::fill_n(blocks.back()->data(), input.size(), real(block_content));
    leaves.back().bind(input.clone(), *blocks.back(), 0, -1);
  }
  TapeScope scope;
  const Var y = op(leaves);
  Run result{y.value(), {}};
  scope.tape().backward(std::vector<Var>{y}, {random_normal(y.shape(), 77, 1)});
  for (const Var& leaf : leaves) result.grads.push_back(leaf.grad());
  return result;
}

/// Fails the test where `fused` and `composed` differ on random inputs of these shapes.
inline void check_agreement(const std::string& name, const Op& fused, const Op& composed,
                            const std::vector<Shape>& shapes, double stddev = 0.5) {
  std::vector<Array> inputs;
  for (const Shape& shape : shapes) inputs.push_back(random_normal(shape, inputs.size(), stddev));
  const Run expected = run(composed, inputs, false);
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    for (const bool in_place : {false, true}) {
      INFO(name << ", threads " << count << std::string(in_place ? ", in place" : ""));
      const Run actual = run(fused, inputs, in_place);
      CHECK(distance(actual.value, expected.value) <= tolerance);
      for (size_t i = 0; i < inputs.size(); ++i) {
        INFO("gradient of input " << i);
        CHECK(distance(actual.grads[i], expected.grads[i], in_place ? block_content : 0) <= tolerance);
      }
      std::vector<Var> constants(inputs.begin(), inputs.end());
      CHECK(fused(constants).value().to_vector() == actual.value.to_vector());  // recording changes no bit
    }
  }
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
