// Mixers from outside of the library.
#include "nn/mixer/custom_mixer.hpp"

#include <doctest/doctest.h>

#include "core/base/error.hpp"
#include "core/ops/math.hpp"
#include "nn/blocks/block.hpp"
#include "nn/systems/make_mixer.hpp"
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

enum class Sign { plus, minus };

std::vector<EnumName<Sign>> enum_names(Sign) { return {{Sign::plus, "plus"}, {Sign::minus, "minus"}}; }

/// The config of a Gain, as a mixer of the library has one.
struct GainConfig {
  static constexpr const char* type_name = "test-gain-options";
  double start = 2;
  Sign sign = Sign::plus;
  int64_t heads = 1;

  bool has_position_limit() const { return heads > 2; }
};

template <class Fields>
void describe(Fields& f, GainConfig& c) {
  f("start", c.start, greater(0), "initial gain");
  f("sign", c.sign, any(), "of the gain");
  f("heads", c.heads, at_least(1), "divides the width");
}
void validate(const GainConfig& c, const ModelShape& model, Problems& problems) {
  check_heads(c.heads, model, problems);
}
std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape&, const GainConfig& c) {
  return std::make_unique<Gain>(scope, c.sign == Sign::plus ? c.start : -c.start);
}

double gain_of(const CustomMixerConfig& config) {
  ParamStore store;
  make_mixer(Scope(store, 1), {4, 4}, config);
  return store.params()[0].var.value()[0];
}

TEST_CASE("a registered mixer with a config struct: its options, its rules and what it knows are its own") {
  register_mixer<GainConfig>();
  CustomMixerConfig config{"test-gain-options"};
  CHECK(gain_of(config) == 2);  // without options its defaults
  config.options = AnyConfig::of(GainConfig{3, Sign::minus, 3});
  CHECK(gain_of(config) == -3);
  CHECK(mixer_name(config) == std::string("test-gain-options"));
  CHECK(mixer_label(config) == "test-gain-options (heads 3, sign minus, start 3)");
  CHECK(has_position_limit(MixerConfig(config)));
  ProblemText problems("mixer");
  validate_mixer(config, {4, 16}, problems);
  CHECK(problems.text() == "mixer.heads: 3 heads do not divide the width 4");
  config.name = "test-gain-unknown";
  ProblemText unknown("mixer");
  validate_mixer(config, {4, 16}, unknown);
  CHECK(unknown.text().rfind("mixer.name: this program registers no mixer \"test-gain-unknown\"", 0) == 0);
}

TEST_CASE("what a registration must keep to") {
  const auto make = [](const Scope& scope, const MixerShape&) { return std::make_unique<Gain>(scope, 1); };
  register_mixer("test-twice", make);
  CHECK_THROWS_WITH_AS(register_mixer("test-twice", make),
                       "register_mixer: a mixer \"test-twice\" is already registered", std::invalid_argument);
  CHECK_THROWS_AS(register_mixer("", make), std::invalid_argument);
  CHECK_THROWS_AS(register_mixer("test-none", nullptr), std::invalid_argument);
  ParamStore store;
  CHECK_THROWS_WITH_AS(make_mixer(Scope(store, 1), {}, CustomMixerConfig{"test-unknown"}),
                       doctest::Contains("no custom mixer \"test-unknown\" was registered"), ConfigError);
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION
