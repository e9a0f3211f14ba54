#include "nn/systems/fastformer/op.hpp"
#include "tests/support/bf16_cases.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

TEST_CASE("fastformer with a bf16 copy of its last projection") {
  const int64_t width = 70;
  check_bf16(
      {"fastformer", {{3, 40, 2 * width}, {5, width}, {5, width}, {width, width}, {width}}, {3}, [](const auto& v) {
         return fastformer(v[0], {v[1], v[2], v[3], v[4]}, Segments::full(3, 40), true);
       }});
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
