// FLASH: what every mixer must do, its two parts, and defects known from other implementations. Gradients are
// in gradcheck_mixer.cpp, PyTorch's numbers in test_parity.cpp.
#include <doctest/doctest.h>

#include "nn/systems/flash/mixer.hpp"
#include "nn/systems/mixer_config.hpp"
#include "tests/nn/systems/flash/cases.hpp"
#include "tests/nn/systems/gated/rules.hpp"
#include "tests/nn/systems/samples.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

TEST_CASE("FLASH does what every mixer must do, in all its forms") {
  for (const MixerCase& c : flash_cases()) check_mixer(c);
}

FlashConfig only_global(int64_t chunk) {
  FlashConfig config = flash_config(chunk);
  config.local = false;
  return config;
}

FlashConfig without_positions(FlashConfig config) {
  config.rotary.enabled = false;
  config.position_bias = RelativeBiasKind::none;
  return config;
}

/// Value, gradient of the input, gradients of all parameters.
std::vector<Array> all_of(const Built<Mixer>& built, const Array& x, const Segments& segments) {
  const Var leaf = Var::leaf(x);
  TapeScope scope;
  const Var y = built.module->forward(leaf, {segments});
  scope.tape().backward(std::vector<Var>{y}, {normal_array(y.shape(), 9)});
  std::vector<Array> all{y.value(), leaf.grad()};
  for (const Param& param : built.store->params()) all.push_back(param.var.grad());
  return all;
}

TEST_CASE("FLASH without its global part, on texts within one chunk, is GAU") {
  const int64_t chunk = 40;
  const auto of_its_form = mixer_called("gau", {{"paper_length", std::to_string(chunk)}});
  if (!of_its_form) return;
  int compared = 0;
  for (const MixerCase& c : flash_cases()) {
    FlashConfig config = std::get<FlashConfig>(c.config);
    config.chunk = chunk;
    config.local = true;
    config.global = false;
    MixerConfig gau = *of_its_form;
    std::visit(
        [&](auto& other) {
          if constexpr (std::is_base_of_v<GatedUnitConfig, std::decay_t<decltype(other)>>)
            static_cast<GatedUnitConfig&>(other) = config;
        },
        gau);
    for (const bool causal : {true, false}) {
      for (const int64_t length : {1, 29, 40}) {
        const Segments segments = length == 29 ? ragged_segments(length) : Segments::full(4, length);
        const Array x = normal_array({4, length, width}, 3);
        const auto flash = all_of(built_mixer(config, causal, chunk), x, segments),
                   expected = all_of(built_mixer(gau, causal, chunk), x, segments);
        REQUIRE(flash.size() == expected.size());
        for (size_t i = 0; i < flash.size(); ++i) CHECK_MESSAGE(identical(flash[i], expected[i]), c.name, ", ", i);
        ++compared;
      }
    }
  }
  CHECK(compared >= 60);
}

TEST_CASE("FLASH's output is the sum of what its two parts alone give") {
  const Array x = normal_array({4, 29, width}, 4);
  const Segments segments = ragged_segments(29);
  for (const bool causal : {true, false}) {
    const FlashConfig config = flash_config(8);
    const auto both = built_mixer(config, causal, 29);
    Array sum = Array::zeros(x.shape());
    for (const bool local : {true, false}) {
      FlashConfig one = config;
      one.local = local;
      one.global = !local;
      const auto built = built_mixer(one, causal, 29);
      for (const char* const name : {"gain", "offset"}) {
        const Array views = both.store->find(name).var.value();
        built.store->find(name).var.assign(local ? views.rows(0, 2).clone() : views.rows(2, 4).clone());
      }
      const Array y = forward(*built.module, x, segments);
      for (int64_t i = 0; i < y.size(); ++i) sum.mutable_data()[i] += y[i];
    }
    CHECK(relative_error(forward(*both.module, x, segments), sum, 1) <= layer_tolerance);
  }
}

TEST_CASE("FLASH-pytorch: the causal global term does not grow with the position") {
  const int64_t chunk = 8, length = 40 * chunk;
  const Array token = normal_array({width}, 5);
  Array x(Shape{1, length, width});  // the same token everywhere
  for (int64_t i = 0; i < x.size(); ++i) x.mutable_data()[i] = token[i % width];
  for (const Normaliser normaliser : {Normaliser::counted, Normaliser::paper}) {
    FlashConfig config = without_positions(only_global(chunk));
    config.normaliser = normaliser;
    const auto built = built_mixer(config, true, length);
    const Array y = forward(*built.module, x, Segments::full(1, length));
    const Array second = tokens(y, chunk, 2 * chunk);
    CHECK(relative_error(second, Array::zeros(second.shape()), 1e-3) > 10);
    for (int64_t begin = 2 * chunk; begin < length; begin += chunk)
      CHECK(relative_error(tokens(y, begin, begin + chunk), second) <= layer_tolerance);
  }
}

TEST_CASE(
    "FLASH, normaliser document: the local part is that of counted times tokens of the chunk over those of the text") {
  const int64_t chunk = 8, length = 29;
  const Array x = normal_array({2, length, width}, 14);
  const Segments all = Segments::full(2, length);
  for (const bool causal : {true, false}) {
    FlashConfig config = flash_config(chunk);
    config.global = false;
    const Array counted = forward(*built_mixer(config, causal, length).module, x, all);
    config.normaliser = Normaliser::document;
    const auto built = built_mixer(config, causal, length);
    const Array document = forward(*built.module, x, all);
    for (int64_t t = 0; t < length; ++t) {
      const int64_t first = t / chunk * chunk,
                    in_chunk = causal ? t + 1 - first : std::min(first + chunk, length) - first;
      const double factor = static_cast<double>(in_chunk) / static_cast<double>(causal ? t + 1 : length);
      Array expected = tokens(counted, t, t + 1).clone();
      for (int64_t i = 0; i < expected.size(); ++i)
        expected.mutable_data()[i] = static_cast<real>(factor * expected[i]);
      CHECK(relative_error(tokens(document, t, t + 1), expected) <= layer_tolerance);
    }
    if (!causal) continue;
    const auto state = built.module->make_state(2);
    for (const int64_t prefilled : {0, 5, 8, 21}) {
      state->reset();
      CHECK(relative_error(decoded(*built.module, x, prefilled, *state), document) <= layer_tolerance);
    }
  }
}

TEST_CASE("FLASH port of the appendix: the first chunk has no global part, and no 0/0") {
  for (const Normaliser normaliser : {Normaliser::counted, Normaliser::paper}) {
    FlashConfig config = only_global(16);
    config.normaliser = normaliser;
    const auto built = built_mixer(config, true, 40);
    const Array x = normal_array({2, 40, width}, 6);
    const std::vector<Array> all = all_of(built, x, Segments::full(2, 40));
    for (const Array& array : all) CHECK(relative_error(array, Array::zeros(array.shape()), 1) < 1e6);  // finite
    const Array first = tokens(all[0], 0, 16);
    CHECK(relative_error(first, Array::zeros(first.shape()), 1) == 0);
    // A text within its first chunk gives no gradient.
    for (const Array& array : all_of(built_mixer(config, true, 40), tokens(x, 0, 16), Segments::full(2, 16)))
      CHECK(relative_error(array, Array::zeros(array.shape()), 1) == 0);
  }
}

TEST_CASE("FLASH port of the appendix: a query sees its own token and, globally, no token of its own chunk") {
  const int64_t length = 24, chunk = 8;
  const Array x = normal_array({1, length, width}, 7);
  const Segments all = Segments::full(1, length);
  const auto changed_rows = [&](const FlashConfig& config, int64_t token) {
    const auto built = built_mixer(config, true, length);
    Array other = x.clone();
    for (int64_t i = token * width; i < (token + 1) * width; ++i) other.mutable_data()[i] += 1;
    const Array y = forward(*built.module, x, all), z = forward(*built.module, other, all);
    std::vector<int64_t> rows;
    for (int64_t t = 0; t < length; ++t)
      if (!identical(tokens(y, t, t + 1), tokens(z, t, t + 1))) rows.push_back(t);
    return rows;
  };
  FlashConfig local = flash_config(chunk);
  local.global = false;
  local.kernel = AttentionKernel::laplace;  // no weight is exactly 0
  CHECK(changed_rows(local, 10) == std::vector<int64_t>{10, 11, 12, 13, 14, 15});
  // The gate and the query are the token's own; its key and value serve later chunks.
  CHECK(changed_rows(only_global(chunk), 10) == std::vector<int64_t>{10, 16, 17, 18, 19, 20, 21, 22, 23});
  CHECK(changed_rows(only_global(chunk), 3) ==
        std::vector<int64_t>{8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23});
}

TEST_CASE("FLASH-pytorch: a short text is not padded to the chunk: any chunk that holds it gives the same") {
  const Array x = normal_array({2, 10, width}, 8);
  for (const bool causal : {true, false}) {
    FlashConfig config = flash_config(10);
    config.position_bias = RelativeBiasKind::rotary;
    const Array y = forward(*built_mixer(config, causal, 10).module, x, Segments::full(2, 10));
    for (const int64_t chunk : {11, 16, 256}) {
      config.chunk = chunk;
      CHECK(identical(forward(*built_mixer(config, causal, 10).module, x, Segments::full(2, 10)), y));
    }
  }
}

TEST_CASE("FLASH with chunks of one token: every token attends to itself, and linearly to all before it") {
  FlashConfig config = without_positions(only_global(1));
  const auto built = built_mixer(config, true, 12);
  const Array x = normal_array({1, 12, width}, 10);
  const Array y = forward(*built.module, x, Segments::full(1, 12));
  // A token reads the mean over earlier tokens, whatever their order.
  Array reversed = x.clone();
  for (int64_t t = 0; t < 11; ++t) std::copy_n(x.data() + (10 - t) * width, width, reversed.mutable_data() + t * width);
  const Array z = forward(*built.module, reversed, Segments::full(1, 12));
  CHECK(relative_error(tokens(z, 11, 12), tokens(y, 11, 12)) <= layer_tolerance);
  CHECK(relative_error(tokens(z, 5, 6), tokens(y, 5, 6)) > 0.01);
}

TEST_CASE("FLASH's decode state does not grow with the text") {
  const FlashConfig config = flash_config(16);
  const auto state = built_mixer(config, true, 8).module->make_state(1);
  const int64_t rows = 16 * (2 * 10 + 95), sums = 10 * 95;
  CHECK(state->elements(0) == 0);
  CHECK(state->elements(5) == 5 * (2 * 10 + 95));
  for (const int64_t seen : {16, 17, 4096}) CHECK(state->elements(seen) == rows + sums);
  FlashConfig local = config, global = config;
  local.global = false;
  global.local = false;
  CHECK(built_mixer(local, true, 8).module->make_state(1)->elements(4096) == 16 * (10 + 95));
  CHECK(built_mixer(global, true, 8).module->make_state(1)->elements(4096) == 16 * (10 + 95) + sums);
}

TEST_CASE("FLASH decodes hundreds of tokens past its max_length, with a Toeplitz bias of the chunk") {
  const auto built = built_mixer(flash_config(24), true, 8);
  const Array x = normal_array({2, 400, width}, 11);
  const Array y = forward(*built.module, x, Segments::full(2, 400));
  const auto state = built.module->make_state(2);
  for (const int64_t prefilled : {0, 1, 239, 240, 241}) {
    state->reset();
    CHECK(relative_error(decoded(*built.module, x, prefilled, *state), y, 1) <= layer_tolerance);
  }
}

TEST_CASE("FLASH's cost per token is that of its chunk and its state, at any length") {
  const auto built = built_mixer(flash_config(16), true, 8);
  const MixerCost cost = built.module->cost(1024);
  CHECK(cost.mixing_flops == 16 * (10 + 95) + 4 * 10 * 95);
  CHECK(cost.decode_flops == 2 * 16 * (10 + 95) + 4 * 10 * 95);
  CHECK(built.module->cost(16384).mixing_flops == cost.mixing_flops);
  CHECK(built.module->cost(16384).saved_elements == cost.saved_elements);
  CHECK(built.module->cost(16).decode_flops == 2 * 16 * (10 + 95));
}

TEST_CASE("FLASH starts with its two parts of one size where tokens are alike: the mean of all values drowns nothing") {
  const Array own = normal_array({4, 64, 64}, 9, 1), common = normal_array({64}, 10, 1);
  Array x(own.shape());
  for (int64_t i = 0; i < x.size(); ++i) x.mutable_data()[i] = common[i % 64] + own[i] / 2;
  const auto size = [&](bool local, bool global) {
    FlashConfig config;
    config.chunk = 16;
    config.local = local;
    config.global = global;
    ParamStore store;
    const auto mixer = make_mixer(Scope(store, 1), {64, 64, /*causal=*/false, 1}, config);
    return root_mean_square(forward(*mixer, x, Segments::full(4, 64)));
  };
  const double local = size(true, false), global = size(false, true);
  CHECK(global < local);  // with gains of 1 three times as large
  CHECK(global > 0.01 * local);
}

TEST_CASE("FLASH refuses what is not defined") {
  const auto build = [](const FlashConfig& config) { built_mixer(config, true, 8); };
  FlashConfig off = flash_config(8);
  off.local = off.global = false;
  CHECK_THROWS_WITH_AS(build(off), "flash: neither the local nor the global part is on", std::invalid_argument);
  CHECK_THROWS_WITH_AS(build(flash_config(0)), "flash: chunk must be at least 1, got 0", std::invalid_argument);
  FlashConfig softmax = flash_config(8);
  softmax.kernel = AttentionKernel::softmax;
  CHECK_NOTHROW(build(softmax));
  softmax.logits = LogitForm::length;
  CHECK_THROWS_AS(build(softmax), std::invalid_argument);
  FlashConfig odd = flash_config(8);
  odd.key_dim = 9;
  CHECK_THROWS_AS(build(odd), std::invalid_argument);
  odd.rotary.enabled = false;
  CHECK_NOTHROW(build(odd));
}

TEST_CASE("rules of flash: kernels with logits they do not have, odd numbers of features that turn") {
  check_gated_rules<FlashConfig>();
}

TEST_CASE("a Toeplitz bias of flash knows the positions of a chunk, at any length") {
  for (const auto& bias : enum_names(RelativeBiasKind{})) {
    FlashConfig config;
    config.position_bias = bias.value;
    CHECK(config.has_position_limit() == (false));
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
