#include <doctest/doctest.h>

#include "core/autograd/gradcheck.hpp"
#include "core/machine/parallel.hpp"
#include "tests/nn/systems/flash/chunk_linear_cases.hpp"
#include "tests/support/agreement.hpp"
#include "tests/support/ragged.hpp"

using namespace capstan;
using namespace capstan::testing;

TEST_CASE("chunk_linear_attention: gradients match finite differences, ragged, past three chunks") {
  const int64_t keys = 9, values = 19;
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    for (const int64_t length : {1, 8, 14}) {
      const Segments segments = length == 14 ? ragged_segments(length) : Segments::full(2, length);
      for (const ChunkLinearCase& c : chunk_linear_cases({1, 4, 100})) {
        GradcheckOptions options;
        options.samples = 60;
        const Shape qk{segments.batch(), length, keys}, v{segments.batch(), length, values};
        const auto report = gradcheck(
            [&](const std::vector<Var>& in) {
              return chunk_linear_attention(in[0], in[1], in[2], segments, c.options);
            },
            {qk, qk, v}, options);
        CHECK_MESSAGE(report.ok, c.name, ", length ", length, ": ", report.worst);
      }
    }
  }
}
