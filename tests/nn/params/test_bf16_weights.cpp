#include "core/base/bf16.hpp"
#include "nn/params/bf16_weights.hpp"
#include "nn/params/param_store.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

#include "nn/layers/layers.hpp"
#include "support/compare.hpp"

using namespace capstan;
using namespace capstan::testing;

TEST_CASE("parameters have bf16 copies of what they are when the copies are made, and none afterwards") {
  ParamStore store;
  const Linear linear(Scope(store, 1) / "a", {9, 5});
  CHECK_THROWS_AS(Bf16Weights{store}, std::logic_error);  // not finalized
  store.finalize();
  if (sizeof(real) != sizeof(float)) {
    CHECK_THROWS_AS(Bf16Weights{store}, std::logic_error);
    CHECK(linear.weight().bf16().empty());
    return;
  }
  const Array x = normal_array({4, 9}, 3);
  const Array expected = linear(Var(x)).value();
  Array in_bf16;
  {
    const Bf16Weights copies(store);
    for (const Param& param : store.params()) {
      REQUIRE(param.var.bf16().shape() == param.var.shape());
      for (int64_t i = 0; i < param.var.size(); ++i)
        CHECK(param.var.bf16()[i].bits == to_bf16(static_cast<float>(param.var.value()[i])).bits);
    }
    CHECK_THROWS_AS(Bf16Weights{store}, std::logic_error);  // two at a time
    in_bf16 = linear(Var(x)).value();
  }
  for (const Param& param : store.params()) CHECK(param.var.bf16().empty());
  const double error = relative_error(in_bf16, expected);
  CHECK(error > 1e-5);
  CHECK(error < 0.01);
  CHECK(relative_error(linear(Var(x)).value(), expected) == 0);
}
