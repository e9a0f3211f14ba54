#include <doctest/doctest.h>

#include "core/autograd/gradcheck.hpp"
#include "core/ops/ops.hpp"
#include "nn/systems/gated/gated_linear.hpp"
#include "nn/systems/gated/op.hpp"
#include "tests/support/agreement.hpp"
#include "tests/support/ragged.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

void check_gradients(const std::string& name, const Op& op, const std::vector<Shape>& inputs) {
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    const GradcheckReport report = gradcheck(op, inputs);
    CHECK_MESSAGE(report.ok, name, ": ", report.worst);
  }
}

}  // namespace

TEST_CASE("gradients of split_silu match finite differences") {
  const std::vector<int64_t> widths{17, 1, 19};
  check_gradients("all parts", [&](const auto& v) { return concatenate(split_silu(v[0], widths), -1); },
                  {Shape{2, 5, 37}});
  check_gradients("one part", [&](const auto& v) { return split_silu(v[0], widths)[2]; }, {Shape{2, 5, 37}});
}

TEST_CASE("gradients of gated_linear match finite differences") {
  check_gradients("with bias", [](const auto& v) { return gated_linear(v[0], v[1], v[2], v[3]); },
                  {{5, 19}, {5, 19}, {3, 19}, {3}});
  check_gradients("without bias", [](const auto& v) { return gated_linear(v[0], v[1], v[2]); },
                  {{2, 5, 19}, {2, 5, 19}, {3, 19}});
}

TEST_CASE("gradients of offset_scale match finite differences") {
  const Ids positions = ragged_segments(9).positions();
  const Shape z{4, 9, 18};
  for (const int64_t copies : {1, 2, 4}) {
    const Shape table{copies, 18};
    check_gradients("without turn",
                    [&](const auto& v) { return concatenate(offset_scale(v[0], v[1], v[2], positions), 0); },
                    {z, table, table});
    for (const auto& pairs : enum_names(RotaryPairs{}))
      check_gradients(
          pairs.name,
          [&](const auto& v) {
            return concatenate(offset_scale(v[0], v[1], v[2], positions, RotaryOptions{100, pairs.value}), 0);
          },
          {z, table, table});
  }
}

TEST_CASE("gradients of rotary_series match finite differences") {
  for (const int64_t length : {1, 2, 70})
    check_gradients("rotary_series", [&](const auto& v) { return rotary_series(v[0], v[1], length, 100); },
                    {Shape{9}, Shape{9}});
}
