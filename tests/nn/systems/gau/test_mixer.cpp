// The gated attention unit: what every mixer must do, its normalisers, and what went wrong elsewhere. Gradients are
// in gradcheck_mixer.cpp, PyTorch's numbers in test_parity.cpp.
#include <doctest/doctest.h>

#include <cmath>

#include "nn/systems/gau/mixer.hpp"
#include "nn/systems/mixer_config.hpp"
#include "tests/nn/systems/gated/rules.hpp"
#include "tests/nn/systems/gau/cases.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

TEST_CASE("GAU does what every mixer must do, in all its forms") {
  for (const MixerCase& c : gau_cases()) check_mixer(c);
}

/// x `times` times in a row: (B, T, D) -> (B, times T, D).
Array repeated(const Array& x, int64_t times) {
  const int64_t numbers = x.size() / x.dim(0);
  Array out(Shape{x.dim(0), times * x.dim(1), x.dim(2)});
  for (int64_t i = 0; i < x.dim(0) * times; ++i)
    std::copy_n(x.data() + i / times * numbers, numbers, out.mutable_data() + i * numbers);
  return out;
}

GauConfig without_positions(GauConfig config) {
  config.rotary.enabled = false;
  config.position_bias = RelativeBiasKind::none;
  return config;
}

/// How the outputs of 16 tokens compare with those of the same 16 tokens said 32 times, by a unit without positions.
/// Causal, of the last token alone: the others see a part of a repetition.
struct Lengths {
  double difference;  // relative to the largest
  double growth;      // of their root mean square
};

Lengths at_512_tokens(const GauConfig& config, bool causal) {
  const auto built = built_mixer(without_positions(config), causal, 16);
  const Array x = normal_array({2, 16, width}, 3);
  const int64_t first = causal ? 15 : 0;
  const Array y = tokens(forward(*built.module, x, Segments::full(2, 16)), first, 16);
  const Array z = tokens(forward(*built.module, repeated(x, 32), Segments::full(2, 512)), 496 + first, 512);
  return {relative_error(z, y), root_mean_square(z) / root_mean_square(y)};
}

TEST_CASE("GAU, normaliser counted: the same model has outputs of the same size on 16 and on 512 tokens") {
  for (const auto& kernel : enum_names(AttentionKernel{})) {
    const GauConfig config = gau_config(kernel.value, LogitForm::key_dim, Normaliser::counted);
    for (const bool causal : {false, true}) {
      const double difference = at_512_tokens(config, causal).difference;
      CHECK_MESSAGE(difference <= layer_tolerance, kernel.name, causal ? ", causal: " : ": ", difference);
    }
  }
}

TEST_CASE(
    "FLASHQuad_pytorch: a constant n lets outputs grow with the text, n inside the kernel alone lets them shrink") {
  const AttentionKernel kernel = AttentionKernel::squared_relu;
  const auto growth = [&](LogitForm logits, Normaliser normaliser) {
    return at_512_tokens(gau_config(kernel, logits, normaliser), false).growth;
  };
  CHECK(growth(LogitForm::key_dim, Normaliser::paper) == doctest::Approx(32).epsilon(1e-4));
  CHECK(growth(LogitForm::length, Normaliser::counted) == doctest::Approx(1.0 / 32).epsilon(1e-4));
  CHECK(growth(LogitForm::key_dim, Normaliser::counted) == doctest::Approx(1).epsilon(1e-4));
}

TEST_CASE("GAU, normaliser paper: n is the constant of the config, whatever the text's length, padding or packing") {
  for (const bool causal : {true, false}) {
    for (const LogitForm logits : {LogitForm::key_dim, LogitForm::length}) {
      const auto output = [&](int64_t paper_length) {
        GauConfig config = gau_config(AttentionKernel::squared_relu, logits, Normaliser::paper);
        config.position_bias = logits == LogitForm::length ? RelativeBiasKind::none : RelativeBiasKind::rotary;
        config.paper_length = paper_length;
        const auto built = built_mixer(config, causal, 29);
        return forward(*built.module, normal_array({4, 29, width}, 3), ragged_segments(29));
      };
      // f is homogeneous: n takes its power out of every output alike.
      const double power = logits == LogitForm::key_dim ? 1 : 2;
      const Array y = output(64), z = output(128);
      double worst = 0, largest = 0;
      for (int64_t i = 0; i < y.size(); ++i) {
        worst = std::max(worst, std::abs(static_cast<double>(y[i]) - std::pow(2, power) * static_cast<double>(z[i])));
        largest = std::max(largest, std::abs(static_cast<double>(y[i])));
      }
      CHECK(worst <= layer_tolerance * largest);
    }
  }
}

/// One key sees one query: the weight that a logit of `logit` gets, by a unit whose gate and value are 1.
double weight_of(const GauConfig& base, double logit) {
  GauConfig config = base;
  config.expansion = 1;
  config.key_dim = 1;
  config.rotary.enabled = false;
  config.position_bias = RelativeBiasKind::toeplitz;
  config.bias = true;
  Built<Mixer> built;
  built.module = make_mixer(Scope(*built.store, 1), {1, 4, false, 1}, config);
  const double one = 1.2784645427610737;  // silu(one) = 1
  const auto assign = [&](const char* name, const std::vector<double>& values) {
    const Var& var = built.store->find(name).var;
    var.assign(Array(var.shape(), std::vector<real>(values.begin(), values.end())));
  };
  assign("to_uvz.weight", {0, 0, 0});
  assign("to_uvz.bias", {one, one, 0});  // z = 0
  assign("relative_bias.table", {9, 9, 9, logit, 9, 9, 9});
  assign("to_out.weight", {1});
  assign("to_out.bias", {0});
  return static_cast<double>(forward(*built.module, Array(Shape{1, 1, 1}, real{1}), Segments::full(1, 1)).item());
}

TEST_CASE("FLASH-pytorch: the laplace kernel's deviation is 1 / sqrt(4 pi); a logit of 0 weighs 0.0061, not 0.21") {
  GauConfig config;
  config.kernel = AttentionKernel::laplace;
  CHECK(weight_of(config, 0) == doctest::Approx(0.0060977).epsilon(1e-4));
  CHECK(weight_of(config, std::sqrt(0.5)) == doctest::Approx(0.5).epsilon(1e-6));
  CHECK(weight_of(config, 9) == doctest::Approx(1).epsilon(1e-6));
  config.kernel = AttentionKernel::squared_relu;
  CHECK(weight_of(config, 1.5) == doctest::Approx(2.25).epsilon(1e-6));
  CHECK(weight_of(config, -1.5) == 0);  // a row of negative logits gives 0, never NaN
}

TEST_CASE("FLASH-pytorch: the position bias is there when asked for, and only then") {
  const Array x = normal_array({2, 40, width}, 5);
  const Segments all = Segments::full(2, 40);
  for (const auto& kind : enum_names(RelativeBiasKind{})) {
    GauConfig config = gau_config(AttentionKernel::squared_relu, LogitForm::key_dim, Normaliser::counted);
    config.position_bias = kind.value;
    const auto built = built_mixer(config, false, 40);
    const Array y = forward(*built.module, x, all);
    int found = 0;
    for (const Param& param : built.store->params()) {
      if (param.name.rfind("relative_bias.", 0) != 0) continue;
      ++found;
      param.var.assign(Array::zeros(param.var.shape()));
    }
    CHECK((found > 0) == (kind.value != RelativeBiasKind::none));
    const double change = relative_error(forward(*built.module, x, all), y, 1e-3);
    CHECK_MESSAGE((change > 0.01) == (found > 0), kind.name, ": ", change);
  }
}

TEST_CASE("FLASHQuad_pytorch: a short text reads the centre of the Toeplitz table") {
  GauConfig config = gau_config(AttentionKernel::squared_relu, LogitForm::key_dim, Normaliser::counted);
  config.position_bias = RelativeBiasKind::toeplitz;
  for (const bool causal : {true, false}) {
    const auto built = built_mixer(config, causal, 40);
    const Array x = normal_array({1, 9, width}, 6);
    const Array y = forward(*built.module, x, Segments::full(1, 9));
    const Var& table = built.store->find("relative_bias.table").var;
    Array cut = table.value().clone();
    for (int64_t i = 0; i < cut.size(); ++i)
      if (std::abs(i - 39) > 8) cut.mutable_data()[i] = 1e6;  // distances that nine tokens do not have
    table.assign(cut);
    CHECK(identical(forward(*built.module, x, Segments::full(1, 9)), y));
  }
}

TEST_CASE("FLASH port of the appendix: features far back turn slower, so that distance counts less and less") {
  GauConfig config = gau_config(AttentionKernel::softmax, LogitForm::key_dim, Normaliser::counted);
  config.position_bias = RelativeBiasKind::none;
  config.rotary = {true, 10000, RotaryPairs::halves};
  // With the angles' exponent negated, the last pair would turn by 10000^(4/5) per position.
  const auto built = built_mixer(config, false, 40);
  const Var &gain = built.store->find("gain").var, &offset = built.store->find("offset").var;
  Array only_slow = Array::zeros({2, 10});
  for (const int64_t feature : {4, 9, 14, 19}) only_slow.mutable_data()[feature] = 1;
  gain.assign(only_slow);
  offset.assign(Array::zeros({2, 10}));
  const Array x = normal_array({1, 12, width}, 7), y = forward(*built.module, x, Segments::full(1, 12));
  GauConfig unturned = config;
  unturned.rotary.enabled = false;
  const auto still = built_mixer(unturned, false, 40);
  still.store->find("gain").var.assign(only_slow);
  still.store->find("offset").var.assign(Array::zeros({2, 10}));
  CHECK(relative_error(forward(*still.module, x, Segments::full(1, 12)), y, 1e-3) <= 0.05);
}

TEST_CASE("neural_net: the weights depend on queries and keys, not on positions alone") {
  GauConfig config = gau_config(AttentionKernel::squared_relu, LogitForm::key_dim, Normaliser::counted);
  const auto built = built_mixer(config, false, 40);
  const Array x = normal_array({1, 40, width}, 8);
  const Array y = forward(*built.module, x, Segments::full(1, 40));
  const Var& gain = built.store->find("gain").var;
  const Array before = gain.value();
  for (const int64_t view : {0, 1}) {
    Array changed = before.clone();
    for (int64_t i = 0; i < 10; ++i) changed.mutable_data()[view * 10 + i] *= real(1.5);
    gain.assign(changed);
    CHECK(relative_error(forward(*built.module, x, Segments::full(1, 40)), y) > 0.01);
  }
}

TEST_CASE("GAU starts alive") {
  ParamStore store;
  const auto mixer = make_mixer(Scope(store, 1), {64, 64, true, 1}, GauConfig{});
  const double size = root_mean_square(forward(*mixer, normal_array({4, 64, 64}, 9, 1), Segments::full(4, 64)));
  CHECK(size > 0.02);
  CHECK(size < 1);
}

TEST_CASE("GAU refuses combinations that no system has") {
  const auto build = [](const GauConfig& config) { built_mixer(config, true, 8); };
  CHECK_THROWS_AS(build(gau_config(AttentionKernel::softmax, LogitForm::length, Normaliser::counted)),
                  std::invalid_argument);
  GauConfig odd = gau_config(AttentionKernel::squared_relu, LogitForm::key_dim, Normaliser::counted);
  odd.key_dim = 9;
  odd.position_bias = RelativeBiasKind::none;
  CHECK_THROWS_AS(build(odd), std::invalid_argument);
  odd.rotary.enabled = false;
  CHECK_NOTHROW(build(odd));
  odd.position_bias = RelativeBiasKind::rotary;
  CHECK_THROWS_AS(build(odd), std::invalid_argument);
}

TEST_CASE("GAU decodes past its first buffers, and says what a state holds") {
  GauConfig config = gau_config(AttentionKernel::squared_relu, LogitForm::length, Normaliser::counted);
  const auto built = built_mixer(config, true, 8);
  const Array x = normal_array({2, 300, width}, 10);
  const Array y = forward(*built.module, x, Segments::full(2, 300));
  const auto state = built.module->make_state(2);
  for (const int64_t prefilled : {0, 63, 64, 65, 200}) {
    state->reset();
    CHECK(relative_error(decoded(*built.module, x, prefilled, *state), y, 1) <= layer_tolerance);
  }
  CHECK(state->elements(300) == 300 * (10 + 95));
  config.position_bias = RelativeBiasKind::toeplitz;
  const auto limited = built_mixer(config, true, 100);
  const auto at_end = limited.module->make_state(1);
  limited.module->prefill(Var(normal_array({1, 100, width}, 11)), *at_end);
  for (const Shape& next : {Shape{1, width}, Shape{1, 1, width}}) {
    const Var x_next(Array::zeros(next));
    const auto read = [&] {
      return next.rank() == 2 ? limited.module->step(x_next, *at_end) : limited.module->prefill(x_next, *at_end);
    };
    CHECK_THROWS_WITH_AS(read(), "gau: token 100 is past the 100 positions of this mixer", std::invalid_argument);
  }
}

TEST_CASE("rules of gau: kernels with logits they do not have, odd numbers of features that turn") {
  check_gated_rules<GauConfig>();
}

TEST_CASE("rules of gau: a token sees its whole document, so that normaliser document is for flash") {
  GauConfig config;
  config.normaliser = Normaliser::document;
  ProblemText problems("mixer");
  validate(config, {24, 100}, problems);
  CHECK(problems.text() ==
        "mixer.normaliser: document is for flash: a token of gau sees its whole document, so take counted");
}

TEST_CASE("a Toeplitz bias of gau knows max_length positions") {
  for (const auto& bias : enum_names(RelativeBiasKind{})) {
    GauConfig config;
    config.position_bias = bias.value;
    CHECK(config.has_position_limit() == (bias.value == RelativeBiasKind::toeplitz));
  }
}

TEST_CASE("what gau computes for a token: two products over the tokens it sees, half of them in a causal model") {
  GauConfig config;
  config.key_dim = 10;
  const double of_each = 2 * (10 + 2 * width);
  CHECK(built_mixer(config, true, 1).module->cost(100).mixing_flops == 50 * of_each);
  CHECK(built_mixer(config, true, 1).module->cost(100).decode_flops == 100 * of_each);
  CHECK(built_mixer(config, false, 1).module->cost(100).mixing_flops == 100 * of_each);
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
