// The gated attention unit against PyTorch (tests/parity/systems/gau.py).
#include <sstream>

#include "tests/nn/mixer_suite.hpp"
#include "tests/support/fixture.hpp"

CAPSTAN_BEGIN
namespace testing {
namespace {

template <class E>
E named(const std::string& name) {
  for (const auto& entry : enum_names(E{}))
    if (name == entry.name) return entry.value;
  FAIL("no enumerator " << name);
  return E{};
}

GauConfig config_of(const Fixture& fixture, const std::string& name) {
  const auto text = [&](const char* key) { return fixture.text(name + "." + key); };
  const int64_t dims = std::stoll(text("rotary_dims"));
  const bool interleaved = text("interleaved") == "true";
  GauConfig config;
  config.kernel = named<AttentionKernel>(text("kernel"));
  config.logits = named<LogitForm>(text("logits"));
  config.normaliser = named<Normaliser>(text("normaliser"));
  config.position_bias = named<RelativeBiasKind>(text("position_bias"));
  config.rotary = {dims > 0, dims, std::stod(text("rotary_base")),
                   interleaved ? RotaryPairs::interleaved : RotaryPairs::halves};
  config.bias = text("bias") == "true";
  config.key_dim = std::stoll(text("key_dim"));
  config.expansion = std::stod(text("expansion"));
  config.paper_length = std::stoll(text("paper_length"));
  config.t5_scale = std::stod(text("t5_scale"));
  return config;
}

/// Output, gradient of the input, gradients of all parameters.
void check_direction(const Fixture& fixture, const std::string& name, bool causal) {
  ParamStore store;
  const auto mixer = make_mixer(Scope(store, 1), {fixture.number("width"), fixture.number("max_length"), causal, 1},
                                config_of(fixture, name));
  for (const Param& param : store.params()) param.var.assign(fixture.array(name + ".parameter." + param.name));
  const std::string place = name + (causal ? ".causal" : ".bidirectional");
  const Var x = Var::leaf(fixture.array("x"));
  TapeScope scope;
  const Var y = mixer->forward(x, {Segments(fixture.ids("segment_ids"))});
  double worst = 0;
  const auto compare = [&](const std::string& what, const Array& ours) {
    const double error = relative_error(ours, fixture.array(place + "." + what), 1e-6);
    CHECK_MESSAGE(error <= parity_tolerance, place, ".", what, ": ", error);
    worst = std::max(worst, error);
  };
  compare("y", y.value());
  scope.tape().backward(std::vector<Var>{y}, {fixture.array("dy")});
  compare("dx", x.grad());
  for (const Param& param : store.params()) compare("gradient." + param.name, param.var.grad());
  MESSAGE(place, ": largest difference ", worst, " of the tensor's largest entry");
}

TEST_CASE("GAU: PyTorch's outputs and gradients, for every published form") {
  const Fixture fixture("gau");
  std::istringstream names(fixture.text("configs"));
  int configs = 0;
  for (std::string name; names >> name; ++configs)
    for (const bool causal : {false, true}) check_direction(fixture, name, causal);
  CHECK(configs == 8);
}

}  // namespace
}  // namespace testing
CAPSTAN_END
