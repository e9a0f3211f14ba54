#include <doctest/doctest.h>

#include "tests/nn/systems/aft/op_cases.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/threads.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

struct Outcome {
  Array y;
  std::vector<Array> grads;
};

/// Value and gradients for a fixed upstream gradient.
Outcome evaluate(const AftCase& c, bool fused, const Segments& segments) {
  std::vector<Var> inputs{Var::leaf(normal_array({segments.batch(), segments.length(), c.packed}, 1, 1.0))};
  for (size_t i = 0; i < c.parameters.size(); ++i)
    inputs.push_back(Var::leaf(normal_array(c.parameters[i], 2 + i, 0.7)));
  TapeScope scope;
  const Var y = (fused ? c.fused : c.composed)(inputs, segments);
  scope.tape().backward(std::vector<Var>{y}, {normal_array(y.shape(), 9)});
  Outcome outcome{y.value(), {}};
  for (const Var& input : inputs)
    outcome.grads.push_back(input.has_grad() ? input.grad() : Array::zeros(input.shape()));
  return outcome;
}

/// `floor`: errors are relative to a tensor's largest entry, or to this where it is larger.
void compare(const AftCase& c, const Segments& segments, double tolerance, double floor = 1e-30) {
  const Outcome fused = evaluate(c, true, segments), composed = evaluate(c, false, segments);
  CHECK_MESSAGE(relative_error(fused.y, composed.y) <= tolerance, c.name, " value");
  for (size_t i = 0; i < fused.grads.size(); ++i) {
    const double error = relative_error(fused.grads[i], composed.grads[i], floor);
    CHECK_MESSAGE(error <= tolerance, c.name, " gradient of input ", i, ": ", error);
  }
}

}  // namespace

TEST_CASE("every AFT op equals the composition that defines it, in value and gradients") {
  const int64_t width = 35, length = 29;  // past two SIMD registers plus a tail
  for (const AftCase& c : aft_cases(width, length)) {
    compare(c, Segments::full(2, length), fused_tolerance);
    compare(c, ragged_segments(length), fused_tolerance);
  }
}

TEST_CASE("tiles of any length and any number of threads give the same AFT") {
  const int64_t width = 70, length = 41;  // past one block of channels
  for (const int64_t tile : {1, 7, 16}) {
    for (const int count : {1, 2, 3}) {
      const Threads threads_used(count);
      for (const AftCase& c : aft_cases(width, length, tile)) compare(c, ragged_segments(length), fused_tolerance);
    }
  }
}

TEST_CASE("AFT with the tiles that users get, documents that end in any strip of them") {
  const int64_t width = 10, length = 270;  // over one tile of 256, four of 64
  for (const AftCase& c : aft_cases(width, length)) compare(c, ragged_segments(length), fused_tolerance);
}

TEST_CASE("one token, and no token at all") {
  for (const AftCase& c : aft_cases(20, 1)) {
    // With one visible source, key and w have no gradient but rounding, some ulps of terms of size 1.
    compare(c, Segments::full(3, 1), fused_tolerance, 0.1);
    const Outcome padding = evaluate(c, true, Segments(Ids(Shape{2, 1}, 0)));
    for (int64_t i = 0; i < padding.y.size(); ++i) CHECK(padding.y[i] == 0);
    for (const Array& grad : padding.grads)
      for (int64_t i = 0; i < grad.size(); ++i) CHECK(grad[i] == 0);
  }
}
