// Mixers from outside of the library.
#include "nn/mixers/custom_mixer.hpp"

#include <doctest/doctest.h>

#include "core/base/error.hpp"
#include "core/ops/math.hpp"
#include "nn/blocks/block.hpp"
#include "nn/mixers/make_mixer.hpp"
#include "tests/support/arrays.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// y = gain * x: enough of a mixer to see that it is the one that was asked for.
class Gain final : public Mixer {
 public:
  Gain(const Scope& scope, double start) : gain_(scope.param("gain", {1}, init::constant(start))) {}
  Var forward(const Var& x, const Context&) const override { return x * gain_; }
  std::unique_ptr<MixerState> make_state(int64_t) const override { throw std::logic_error("gain: no state"); }
  Var prefill(const Var& x, MixerState&) const override { return x; }
  Var step(const Var& x, MixerState&) const override { return x; }
  MixerCost cost(int64_t) const override { return {}; }

 private:
  Var gain_;
};

TEST_CASE("a registered mixer is made by its name, with parameters of its own") {
  register_mixer("test-gain", [](const Scope& scope, const MixerShape& shape) {
    return std::make_unique<Gain>(scope, shape.width);
  });
  LayerConfig config;
  config.mixer = CustomMixerConfig{"test-gain"};
  config.feed_forward.type = FeedForwardKind::none;
  config.norm.type = NormKind::none;
  CHECK(mixer_name(config.mixer) == std::string("test-gain"));
  CHECK(registered_mixers() == std::vector<std::string>{"test-gain"});

  ParamStore store;
  const Block block(Scope(store, 1) / "blocks" / 0, MixerShape{3, 4}, config, 0);
  REQUIRE(store.params().size() == 1);
  CHECK(store.params()[0].name == "blocks.0.mixer.gain");
  const Array x({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const Array y = block.forward(Var(x), Context::evaluation(1, 2)).value();
  for (int64_t i = 0; i < x.size(); ++i) CHECK(y[i] == 4 * x[i]);  // x + 3 x
}

TEST_CASE("what a registration must keep to") {
  const MixerMaker make = [](const Scope& scope, const MixerShape&) { return std::make_unique<Gain>(scope, 1); };
  register_mixer("test-twice", make);
  CHECK_THROWS_WITH_AS(register_mixer("test-twice", make), "register_mixer: there is a mixer \"test-twice\" already",
                       std::invalid_argument);
  CHECK_THROWS_AS(register_mixer("", make), std::invalid_argument);
  CHECK_THROWS_AS(register_mixer("test-none", nullptr), std::invalid_argument);
  ParamStore store;
  CHECK_THROWS_WITH_AS(make_mixer(Scope(store, 1), {}, CustomMixerConfig{"test-unknown"}),
                       doctest::Contains("no custom mixer \"test-unknown\" was registered"), ConfigError);
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION
