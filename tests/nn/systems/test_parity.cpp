// Every mixer against PyTorch (tests/parity/README.md): outputs and gradients of the equations, and of published
// modules whose tensors have Capstan's names in the fixtures (tests/parity/published.py).
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/array/visibility.hpp"
#include "tests/nn/mixer/mixer_suite.hpp"
#include "tests/nn/systems/samples.hpp"
#include "tests/support/fixture.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

/// Of the tensor's largest entry.
constexpr double mixer_tolerance = sizeof(real) == 4 ? parity_tolerance : 1e-12;

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> result;
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

template <class Config>
using WithRotary = decltype(std::declval<Config>().rotary);

/// Fixtures have another base of rotary positions than configurations, in which it is no key.
template <class Config, class = void>
struct RotaryBase {
  static bool set(Config&, double) { return false; }
};
template <class Config>
struct RotaryBase<Config, std::void_t<WithRotary<Config>>> {
  static bool set(Config& config, double base) {
    config.rotary.base = base;
    return true;
  }
};

/// Sets KEY of the mixer, or PART.KEY of the layer around it, to what stands behind the equals sign.
bool set_layer_option(LayerConfig& layer, const std::string& option) {
  const size_t equals = option.find('='), dot = option.rfind('.', equals);
  const std::string key = option.substr(0, equals), value = option.substr(equals + 1);
  if (key == "rotary_base")
    return std::visit(
        [&](auto& config) { return RotaryBase<std::decay_t<decltype(config)>>::set(config, std::stod(value)); },
        layer.mixer);
  if (dot == std::string::npos) return set_option(layer.mixer, key, value);
  const std::string part = key.substr(0, dot), field = key.substr(dot + 1);
  if (part == "norm" && field == "eps") {  // no key of configurations
    layer.norm.eps = std::stod(value);
    return true;
  }
  if (part == "feed_forward") return set_option(layer.feed_forward, field, value);
  return part == "layer" && set_option(layer, field, value);
}

/// A mixer or, for a published block, all of it, as configuration `name` of a fixture describes it, with its weights.
struct ParityModule {
  ParityModule(const Fixture& fixture, const std::string& name, LayerConfig layer, bool causal) {
    const std::vector<std::string> options = words(fixture.text(name + ".options"));
    bool is_block = false;
    for (const std::string& option : options) {
      CHECK_MESSAGE(set_layer_option(layer, option), option);
      is_block = is_block || option.rfind("layer.", 0) == 0;
    }
    const MixerShape shape{fixture.number(name + ".width"), fixture.number(name + ".max_length"), causal, 1};
    if (is_block)
      block = std::make_unique<Block>(Scope(store, 1), shape, layer, 0);
    else
      mixer = make_mixer(Scope(store, 1), shape, layer.mixer);
    for (const Param& param : store.params()) param.var.assign(fixture.array(name + ".parameter." + param.name));
  }
  Var operator()(const Var& x, const Context& context) const {
    return block != nullptr ? block->forward(x, context) : mixer->forward(x, context);
  }

  ParamStore store;
  std::unique_ptr<Block> block;
  std::unique_ptr<Mixer> mixer;
};

/// Output, gradient of the input, gradients of all parameters, in one direction.
void check_case(const Fixture& fixture, const std::string& name, const MixerConfig& mixer,
                const std::string& direction) {
  LayerConfig layer;
  layer.mixer = mixer;
  const ParityModule module(fixture, name, layer, direction == "causal");
  const std::string inputs = fixture.has(name + ".x") ? name + "." : "", place = name + "." + direction;
  const Segments segments(fixture.ids(inputs + "segment_ids"));
  const auto compare = [&](const std::string& what, const Array& ours) {
    const double error = relative_error(ours, fixture.array(place + "." + what), 1e-6);
    CHECK_MESSAGE(error <= mixer_tolerance, place, ".", what, ": ", error);
  };
  const Var x = Var::leaf(fixture.array(inputs + "x"));
  TapeScope scope;
  const Var y = module(x, {segments});
  Array visible = y.value().clone();
  if (!inputs.empty())  // at padding, a published module may give anything
    clear_padding(visible.mutable_data(), visible.dim(2), segments);
  compare("y", visible);
  scope.tape().backward(std::vector<Var>{y}, {fixture.array(inputs + "dy")});
  compare("dx", x.grad());
  for (const Param& param : module.store.params()) compare("gradient." + param.name, param.var.grad());
}

TEST_CASE("mixers and published modules: PyTorch's outputs and gradients, for every configuration there is") {
  const std::vector<std::pair<const char*, int>> systems = {
      {"aft", 20}, {"fastformer", 11}, {"attention", 22}, {"gau", 12}, {"flash", 24}};
  for (const auto& [system, expected] : systems) {
    const Fixture fixture(system);
    int cases = 0;
    for (const std::string& name : words(fixture.text("configs"))) {
      const auto mixer = mixer_called(fixture.text(name + ".mixer"));
      for (const std::string& direction : words(fixture.text(name + ".cases"))) {
        ++cases;
        if (mixer) check_case(fixture, name, *mixer, direction);
      }
    }
    CHECK_MESSAGE(cases == expected, system);
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
