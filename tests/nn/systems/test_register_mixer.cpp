// Mixers from outside of the library.
#include "nn/layers/feed_forward.hpp"
#include "nn/systems/register_mixer.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/ops/ops.hpp"
#include "nn/blocks/block.hpp"
#include "nn/systems/mixer_config.hpp"
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

enum class Sign { plus, minus };

std::vector<EnumName<Sign>> enum_names(Sign) { return {{Sign::plus, "plus"}, {Sign::minus, "minus"}}; }

/// The config of a Gain, as a mixer of the library has one.
struct GainConfig {
  static constexpr const char* type_name = "test-gain";
  double start = 2;
  Sign sign = Sign::plus;
  int64_t heads = 1;

  bool has_position_limit() const { return heads > 2; }
  std::string prefix_obstacle() const { return sign == Sign::minus ? "a gain of -3 is a test" : ""; }
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

double gain_of(const MixerConfig& config) {
  ParamStore store;
  make_mixer(Scope(store, 1), {4, 4}, config);
  return store.params()[0].var.value()[0];
}

/// Registers the mixer once, whichever case runs first.
const bool registered = [] {
  register_mixer<GainConfig>();
  return true;
}();

TEST_CASE("a registered mixer: its options, its rules and what it says of itself are those of its config struct") {
  REQUIRE(registered);
  const std::vector<std::string> names = CustomMixerConfig::type_names();
  CHECK(std::count(names.begin(), names.end(), "test-gain") == 1);
  CustomMixerConfig custom("test-gain");
  CHECK(gain_of(custom) == 2);  // the defaults
  custom.options = AnyConfig::of(GainConfig{3, Sign::minus, 3});
  const MixerConfig config = custom;
  CHECK(gain_of(config) == -3);
  CHECK(mixer_name(config) == std::string("test-gain"));
  CHECK(mixer_label(config) == "test-gain (heads 3, sign minus, start 3)");
  CHECK(has_position_limit(config));
  CHECK(prefix_obstacle(config) == "a gain of -3 is a test");
  ProblemText problems("mixer");
  validate_mixer(config, {4, 16}, problems);
  CHECK(problems.text() == "mixer.heads: 3 heads do not divide the width 4");
}

TEST_CASE("a registered mixer in a block has parameters of its own") {
  LayerConfig config;
  config.mixer = CustomMixerConfig("test-gain");
  config.feed_forward.type = FeedForwardKind::none;
  config.norm.type = NormKind::none;
  ParamStore store;
  const Block block(Scope(store, 1) / "blocks" / 0, MixerShape{3, 4}, config, 0);
  REQUIRE(store.params().size() == 1);
  CHECK(store.params()[0].name == "blocks.0.mixer.gain");
  const Array x({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const Array y = block.forward(Var(x), Context::evaluation(1, 2)).value();
  for (int64_t i = 0; i < x.size(); ++i) CHECK(y[i] == 3 * x[i]);  // x + 2 x
}

/// With the name of a mixer of the library.
struct TakenConfig : GainConfig {
  static const char* const type_name;
};
const char* const TakenConfig::type_name = mixer_name(default_mixers().front());

TEST_CASE("a name is registered once, and none of the library's") {
  CHECK_THROWS_WITH_AS(register_mixer<GainConfig>(), "register_mixer: a mixer \"test-gain\" is already registered",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(register_mixer<TakenConfig>(), doctest::Contains("is a mixer of the library"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(CustomMixerConfig("test-unknown"),
                       doctest::Contains("mixer: this program registers no mixer \"test-unknown\" (registered: test-"),
                       ConfigError);
}

/// Says nothing about prefixes.
struct SilentConfig {
  static constexpr const char* type_name = "test-silent";
  bool has_position_limit() const { return false; }
};
template <class Fields>
void describe(Fields&, SilentConfig&) {}
std::unique_ptr<Mixer> make(const Scope&, const MixerShape&, const SilentConfig&) { return nullptr; }

// register_mixer<SilentConfig>() does not compile: "a mixer's config needs std::string prefix_obstacle() const".
static_assert(IsValid<PrefixObstacleOf, GainConfig>::value && !IsValid<PrefixObstacleOf, SilentConfig>::value);
static_assert(IsValid<MakeOf, SilentConfig>::value && IsValid<HasPositionLimitOf, SilentConfig>::value);

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION
