#include <doctest/doctest.h>

#include "core/autograd/gradcheck.hpp"
#include "nn/systems/fastformer/op.hpp"
#include "tests/support/agreement.hpp"
#include "tests/support/ragged.hpp"

using namespace capstan;
using namespace capstan::testing;

TEST_CASE("fastformer: gradients match finite differences, with padding and packed documents, T = 1, past registers") {
  struct Case {
    int64_t width, heads;
    Segments segments;
  };
  // Widths past two registers of eight doubles; one head of more than a unit of 64 channels.
  const std::vector<Case> cases{{35, 5, ragged_segments(13)},
                                {19, 1, ragged_segments(9)},
                                {70, 1, Segments::full(1, 7)},
                                {6, 6, Segments::full(2, 5)},
                                {10, 2, Segments::full(3, 1)}};
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    for (const bool causal : {true, false}) {
      for (const int64_t parts : {2, 3}) {
        for (const Case& c : cases) {
          const Shape logits{c.heads, c.width};
          GradcheckOptions options;
          options.samples = 60;
          const auto report = gradcheck(
              [&](const std::vector<Var>& in) {
                return fastformer(in[0], {in[1], in[2], in[3], in[4]}, c.segments, causal);
              },
              {{c.segments.batch(), c.segments.length(), parts * c.width},
               logits,
               logits,
               {c.width, c.width},
               {c.width}},
              options);
          CHECK_MESSAGE(report.ok, c.heads, " heads of width ", c.width, ", parts ", parts, ", causal ", causal, ": ",
                        report.worst);
        }
      }
    }
  }
}

TEST_CASE("gradcheck would notice if a pool's logits got no gradient") {
  const Segments segments = Segments::full(2, 5);
  const auto report = gradcheck(
      [&](const std::vector<Var>& in) {
        const Var cut(in[1].value());  // a constant: its gradient is lost
        return fastformer(in[0], {cut, in[2], in[3], Var()}, segments, true);
      },
      {{2, 5, 12}, {2, 6}, {2, 6}, {6, 6}});
  CHECK_FALSE(report.ok);
}
