#include <doctest/doctest.h>

#include "core/autograd/gradcheck.hpp"
#include "nn/systems/gated/relative_bias.hpp"
#include "tests/support/weights.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

TEST_CASE("relative bias: gradients of every kind match finite differences") {
  for (const auto& kind : enum_names(RelativeBiasKind{})) {
    if (kind.value == RelativeBiasKind::none) continue;
    for (const RotaryPairs pairs : {RotaryPairs::interleaved, RotaryPairs::halves}) {
      for (const int64_t length : {1, 2, 70}) {
        ParamStore store;
        const RelativeBias bias(Scope(store, 1), {kind.value, 75, 10, {100, pairs}});
        redraw(store);
        std::vector<std::pair<std::string, Var>> leaves;
        for (const Param& param : store.params()) leaves.emplace_back(param.name, param.var);
        const GradcheckReport report = gradcheck([&] { return bias.for_length(length); }, leaves);
        CHECK_MESSAGE(report.ok, kind.name, ", ", length, " positions: ", report.worst);
      }
    }
  }
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
