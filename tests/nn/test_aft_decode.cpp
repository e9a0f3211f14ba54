// AFT decodes what forward computes: all variants, any split between prefill and steps, ordinary and extreme keys.
#include <doctest/doctest.h>

#include <set>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "tests/nn/samples.hpp"
#include "tests/support/agreement.hpp"

CAPSTAN_BEGIN
namespace testing {
namespace {

constexpr int64_t batch = 3;

/// Keys made to measure: `offset` + `gain` times one feature.
struct Keys {
  std::string name = "";
  double gain = 1, offset = 0;
};

/// Inputs whose first feature is 1 and whose others are multiples of 1/64.
Array exact_inputs(int64_t length) {
  Array x = normal_array({batch, length, width}, 8);
  for (int64_t i = 0; i < x.size(); ++i) x.mutable_data()[i] = i % width == 0 ? real{1} : std::round(x[i] * 64) / 64;
  return x;
}

/// Makes the projection give these keys. Nothing is rounded on the way that another order of summation would round
/// differently, so that keys of 10^4 are the same numbers in forward and in a step.
void assign_keys(const ParamStore& store, const Keys& wanted) {
  const Var& weight = store.find("to_qkv.weight").var;
  Array assigned = weight.value().clone();
  for (int64_t key = 0; key < weight.dim(0) - 2 * width; ++key) {
    real* const row = assigned.mutable_data() + (width + key) * width;
    std::fill_n(row, width, real{0});
    row[0] = static_cast<real>(wanted.offset);
    row[1 + 3 * key % (width - 1)] = static_cast<real>(wanted.gain);
  }
  weight.assign(assigned);
  for (const Param& param : store.params())
    if (param.name == "key_bias") param.var.assign(Array::zeros(param.var.shape()));
}

double largest(const Array& array) {
  double result = 0;
  for (int64_t i = 0; i < array.size(); ++i) result = std::max(result, std::abs(static_cast<double>(array[i])));
  return result;
}

/// Prefill with the first `prefilled` tokens, then step by step to the end: (B, T, D), put together again.
Array decoded(const Mixer& mixer, const Array& x, int64_t prefilled, MixerState& state) {
  const int64_t length = x.dim(1);
  Array all(x.shape());
  const auto put = [&](const Array& part, int64_t begin) {
    const int64_t numbers = part.size() / batch;
    for (int64_t row = 0; row < batch; ++row)
      std::copy_n(part.data() + row * numbers, numbers, all.mutable_data() + (row * length + begin) * width);
  };
  put(mixer.prefill(Var(tokens(x, 0, prefilled)), state).value(), 0);
  for (int64_t t = prefilled; t < length; ++t)
    put(mixer.step(Var(tokens(x, t, t + 1).reshape({batch, width})), state).value(), t);
  return all;
}

/// Where a prefill ends: at the beginning, around the window's end and around the borders of tiles.
std::set<int64_t> splits(int64_t window, const std::vector<int64_t>& borders, int64_t length) {
  std::set<int64_t> result{0, 1, length - 1, length};
  for (const int64_t shift : {-1, 0, 1}) {
    if (window > 0) result.insert(window + shift);
    for (const int64_t border : borders) result.insert(border + shift);
  }
  return result;
}

struct Tiling {
  int64_t tile;  // 0: the op's own choice
  int64_t length;
  std::vector<int64_t> borders;
};

const std::vector<Tiling> tilings{{8, 61, {8, 24}}, {0, 150, {64, 128}}};

/// Mixers that work at any length are told a longest one of 11, which must not matter.
void check_decode(const MixerCase& c, const Tiling& tiling, const Keys* keys = nullptr) {
  const AftTileLength tile(tiling.tile);
  const auto built = built_mixer(c.config, /*causal=*/true, c.any_length ? 11 : tiling.length);
  if (keys != nullptr) assign_keys(*built.store, *keys);
  built.store->finalize();
  const Array x = exact_inputs(tiling.length);
  const Array y = built.module->forward(Var(x), Context::evaluation(batch, tiling.length)).value();
  const auto state = built.module->make_state(batch);
  for (const int64_t prefilled : splits(c.window, tiling.borders, tiling.length)) {
    state->reset();
    const double error = relative_error(decoded(*built.module, x, prefilled, *state), y, 1);
    CHECK_MESSAGE(error <= layer_tolerance, c.name, ", tile ", tiling.tile, ", prefill of ", prefilled, ": ", error);
  }
}

TEST_CASE("decode equals forward for every variant, from every kind of prefill, past windows, tiles and max_length") {
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    for (const MixerCase& c : mixer_cases())
      for (const Tiling& tiling : tilings) check_decode(c, tiling);
  }
}

TEST_CASE("decode equals forward, and is finite, with keys up to +-10^4 and with keys close together out there") {
  Array features = exact_inputs(tilings[0].length);
  for (int64_t i = 0; i < features.size(); i += width) features.mutable_data()[i] = 0;
  const double spread = largest(features);
  for (const Keys& keys :
       {Keys{"up to 30", 30 / spread, 0}, Keys{"up to 100", 100 / spread, 0}, Keys{"up to 10^4", 1e4 / spread, 0},
        Keys{"around 10^4", 4, 1e4}, Keys{"around -10^4", 4, -1e4}}) {
    INFO("keys " << keys.name);
    for (const MixerCase& c : mixer_cases()) check_decode(c, tilings[0], &keys);
  }
}

TEST_CASE("decoding keeps the sequences of a batch apart") {
  for (const MixerCase& c : mixer_cases()) {
    const auto built = built_mixer(c.config, true, 30);
    const Array x = normal_array({batch, 30, width}, 9);
    Array changed = normal_array({batch, 30, width}, 10);
    std::copy_n(x.data() + 30 * width, 30 * width, changed.mutable_data() + 30 * width);  // only row 1 is the same
    const auto state = built.module->make_state(batch), other = built.module->make_state(batch);
    const Array y = decoded(*built.module, x, 11, *state), z = decoded(*built.module, changed, 11, *other);
    CHECK_MESSAGE(relative_error(z.rows(1, 2), y.rows(1, 2), 1) <= layer_tolerance, c.name);
    CHECK_MESSAGE(relative_error(z.rows(0, 1), y.rows(0, 1), 1) > 0.01, c.name);
  }
}

TEST_CASE("reset forgets everything") {
  for (const MixerCase& c : mixer_cases()) {
    const auto built = built_mixer(c.config, true, 45);
    const Array x = normal_array({batch, 45, width}, 11), before = normal_array({batch, 40, width}, 12, 3);
    const auto used = built.module->make_state(batch);
    for (const int64_t prefilled : {0, 7}) {
      const auto fresh = built.module->make_state(batch);
      used->reset();
      decoded(*built.module, before, 25, *used);
      used->reset();
      const Array expected = decoded(*built.module, x, prefilled, *fresh);
      CHECK_MESSAGE(decoded(*built.module, x, prefilled, *used).to_vector() == expected.to_vector(), c.name);
    }
  }
}

TEST_CASE("the state's size is what the table of complexities says") {
  struct SizeCase {
    std::string name;
    MixerConfig config;
    int64_t keys, window;
  };
  const int64_t longest = 4096;
  const std::vector<SizeCase> constant{{"simple", AftSimpleConfig{}, width, 0},
                                       {"local", local_config(32, PositionBias::factorised, plain), width, 32},
                                       {"local window 1", local_config(1, PositionBias::factorised, plain), width, 1},
                                       {"conv", conv_config(16, 5, plain), 5, 16},
                                       {"conv a head per channel", conv_config(16, width, plain), width, 16}};
  for (const SizeCase& c : constant) {
    INFO(c.name);
    const auto built = built_mixer(c.config, true, longest);
    const auto state = built.module->make_state(1);
    // (m, D) per key and R per channel, and K, V of the window: 3d and (3 + 2s)d where every channel has a key.
    const int64_t running = 2 * c.keys + width, per_token = c.keys + width;
    CHECK(state->numbers(0) == running);
    for (const int64_t seen : {c.window, c.window + 1, int64_t{256}, longest})
      CHECK(state->numbers(seen) == running + c.window * per_token);
    if (c.window > 1) CHECK(state->numbers(c.window - 1) == running + (c.window - 1) * per_token);
  }
  const auto full = built_mixer(full_config(PositionBias::factorised, plain), true, longest);
  const auto state = full.module->make_state(1);
  for (const int64_t seen : {int64_t{0}, int64_t{256}, longest}) CHECK(state->numbers(seen) == (3 + 2 * seen) * width);
}

TEST_CASE("bidirectional mixers refuse to decode") {
  for (const MixerCase& c : mixer_cases()) {
    const auto built = built_mixer(c.config, /*causal=*/false, 8);
    CHECK_THROWS_WITH_AS(built.module->make_state(1), "aft: a bidirectional mixer does not decode", std::logic_error);
  }
}

TEST_CASE("past max_length, full and local refuse and say why; simple and conv go on") {
  const int64_t longest = 9;
  const Array x = normal_array({batch, longest + 1, width}, 13);
  const Var next(tokens(x, longest, longest + 1).reshape({batch, width}));
  for (const MixerCase& c : mixer_cases()) {
    INFO(c.name);
    const auto built = built_mixer(c.config, true, longest);
    const auto state = built.module->make_state(batch);
    if (c.any_length) {
      CHECK_NOTHROW(built.module->prefill(Var(x), *state));
      CHECK_NOTHROW(built.module->step(next, *state));
      continue;
    }
    CHECK_THROWS_AS(built.module->prefill(Var(x), *state), std::invalid_argument);
    CHECK_THROWS_AS(built.module->forward(Var(x), Context::evaluation(batch, longest + 1)), std::invalid_argument);
    // The refused prefill has left the state as it was.
    const Array y = decoded(*built.module, tokens(x, 0, longest), longest - 1, *state);
    CHECK(relative_error(y,
                         built.module->forward(Var(tokens(x, 0, longest)), Context::evaluation(batch, longest)).value(),
                         1) <= layer_tolerance);
    CHECK_THROWS_WITH_AS(built.module->step(next, *state), "aft: token 9 is past the 9 positions this mixer knows",
                         std::invalid_argument);
  }
}

TEST_CASE("decoding refuses what does not fit its state") {
  for (const MixerCase& c : mixer_cases()) {
    INFO(c.name);
    const auto built = built_mixer(c.config, true, 8);
    const auto state = built.module->make_state(2);
    const auto zeros = [](const Shape& shape) { return Var(Array::zeros(shape)); };
    CHECK_THROWS_AS(built.module->prefill(zeros({3, 4, width}), *state), std::invalid_argument);
    CHECK_THROWS_AS(built.module->prefill(zeros({2, width}), *state), std::invalid_argument);
    CHECK_THROWS_AS(built.module->step(zeros({3, width}), *state), std::invalid_argument);
    CHECK_THROWS_AS(built.module->step(zeros({2, 1, width}), *state), std::invalid_argument);
    CHECK_THROWS_AS(built.module->step(zeros({2, width + 1}), *state), std::invalid_argument);
    const auto other = make_mixer(Scope(*built.store, 1) / "other", {width - 1, 8, true, 1}, AftSimpleConfig{});
    CHECK_THROWS_AS(built.module->step(zeros({2, width}), *other->make_state(2)), std::invalid_argument);
    CHECK_NOTHROW(built.module->step(zeros({2, width}), *state));
    CHECK_THROWS_WITH_AS(built.module->prefill(zeros({2, 4, width}), *state),
                         "aft: prefill needs a fresh state, this one has seen 1 tokens", std::invalid_argument);
  }
}

}  // namespace
}  // namespace testing
CAPSTAN_END
