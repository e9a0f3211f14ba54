#include <doctest/doctest.h>

#include "core/autograd/gradcheck.hpp"
#include "tests/nn/systems/quadratic/op_cases.hpp"
#include "tests/support/agreement.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

void check_gradients(const AttentionCase& c, const Segments& segments, int64_t samples) {
  GradcheckOptions options;
  options.samples = samples;
  const auto report =
      gradcheck([&](const std::vector<Var>& in) { return c.fused(in, segments); }, c.shapes(segments, 5, 3), options);
  CHECK_MESSAGE(report.ok, c.name(), ": ", report.worst);
}

}  // namespace

TEST_CASE("attention: gradients match finite differences, every option, past the boundaries of tiles") {
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    for (const AttentionCase& c : attention_cases(/*tile=*/4)) check_gradients(c, ragged_segments(13), 25);
  }
}

TEST_CASE("attention: gradients over tiles of the usual length, and on documents of one token") {
  for (const auto& kernel : enum_names(AttentionKernel{})) {
    for (const bool causal : {true, false}) {
      check_gradients({kernel.value, causal, 0, 2, true, true}, Segments::full(1, 133), 8);
      check_gradients({kernel.value, causal, 0, 2, true, true}, Segments::full(2, 1), 0);
    }
  }
}
