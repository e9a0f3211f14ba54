// An optimizer of the program's own, from the configuration to a resumed run.
#include <doctest/doctest.h>

#include "core/base/error.hpp"
#include "run/setup/run_config.hpp"
#include "run/yaml/config.hpp"
#include "train/optimizers/optimizer.hpp"
#include "train/optimizers/register_optimizer.hpp"

namespace capstan {
namespace {

/// w -= lr * (g + gain * m), m += g.
struct SumConfig {
  static constexpr const char* type_name = "test-sum";
  double gain = 0.5, most = 1;

  static std::vector<StateSpec> states() { return {{"sum"}}; }
  void update(const Update& update, std::vector<OptimizerState>& states) const {
    for_pieces(update, states[0], [&](const kernels::UpdateBlocks& blocks, int64_t at, double lr) {
      real* const sums = states[0].data() + at;
      for (int64_t i = 0; i < blocks.count; ++i) {
        const auto gradient = static_cast<double>(blocks.grads[i]) * blocks.grad_scale;
        blocks.values[i] -= static_cast<real>(lr * (gradient + gain * static_cast<double>(sums[i])));
        sums[i] += static_cast<real>(gradient);
        blocks.grads[i] = 0;
      }
    });
  }
};
template <class Fields>
void describe(Fields& f, SumConfig& c) {
  f("gain", c.gain, between(0, 1), "of the sum");
  f("most", c.most, between(0, 1), "largest gain");
}
void validate(const SumConfig& c, Problems& problems) {
  if (c.gain > c.most) problems.add("gain", fmt::format("is above most, which is {}", c.most));
}

struct TakenConfig : SumConfig {
  static constexpr const char* type_name = "lion";
};

/// Registers test-sum once, whichever case runs first.
const bool sum_registered = [] {
  register_optimizer<SumConfig>();
  return true;
}();

RunConfig with_optimizer(const std::string& optimizer) {
  return load_config_text<RunConfig>("{name: mine, data: {type: text, train: [a.txt]}, train: {steps: 1, optimizer: " +
                                         optimizer + "}, model: {type: language-model, layers: [{mixer: aft-simple}]}}",
                                     "a.yaml");
}

TEST_CASE("a registered optimizer is a type like those of the library") {
  REQUIRE(sum_registered);
  const RunConfig config = with_optimizer("{type: test-sum, gain: 0.25}");
  CHECK(to_yaml(config).find("type: test-sum") != std::string::npos);
  CHECK_THROWS_AS(with_optimizer("{type: test-sum, gain: 2}"), ConfigError);
  CHECK_THROWS_WITH_AS(with_optimizer("{type: test-sum, gain: 0.5, most: 0.2}"),
                       doctest::Contains("train.optimizer.gain: is above most, which is 0.2"), ConfigError);
  CHECK_THROWS_WITH_AS(with_optimizer("test-som"), doctest::Contains("did you mean test-sum?"), ConfigError);
  CHECK_THROWS_AS(register_optimizer<SumConfig>(), std::invalid_argument);
  CHECK_THROWS_WITH_AS(register_optimizer<TakenConfig>(), doctest::Contains("\"lion\" is an optimizer of the library"),
                       std::invalid_argument);

  ParamStore params;
  const Var weight = Scope(params, 1).param("weight", {3}, init::constant(1));
  params.finalize();
  Optimizer optimizer(config.train.optimizer, params);
  REQUIRE(optimizer.states().size() == 1);
  CHECK(optimizer.states()[0].name() == "sum");
  for (const double expected : {0.9, 0.775}) {  // 1 - 0.1 * 1, then - 0.1 * (1 + 0.25 * 1)
    std::fill_n(params.grads(), 3, real{1});
    optimizer.step(params, 1, 0.1);
    for (int64_t i = 0; i < 3; ++i) CHECK(params.values()[i] == doctest::Approx(expected));
  }
}

}  // namespace
}  // namespace capstan
