#include "nn/systems/gated/gated_linear.hpp"
#include "nn/systems/gated/op.hpp"
#include "tests/support/bf16_cases.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

TEST_CASE("gated_linear with a bf16 copy of its weight") {
  const Shape x{3, 40, 70};
  check_bf16({"gated_linear", {x, x, {52, 70}, {52}}, {2}, [](const auto& v) {
                return gated_linear(v[0], v[1], v[2], v[3]);
              }});
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
