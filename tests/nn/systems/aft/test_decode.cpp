// AFT decodes what forward computes: all variants, any split between prefill and steps, ordinary and extreme keys.
#include <doctest/doctest.h>

#include <set>

#include "core/base/error.hpp"
#include "core/machine/parallel.hpp"
#include "tests/nn/systems/aft/cases.hpp"
#include "tests/support/agreement.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

constexpr int64_t decoded_batch = 3;

/// Keys made to measure: `offset` + `gain` times one feature.
struct Keys {
  std::string name = "";
  double gain = 1, offset = 0;
};

/// Inputs whose first feature is 1 and whose others are multiples of 1/64.
Array exact_inputs(int64_t length) {
  Array x = normal_array({decoded_batch, length, width}, 8);
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
}

double largest(const Array& array) {
  double result = 0;
  for (int64_t i = 0; i < array.size(); ++i) result = std::max(result, std::abs(static_cast<double>(array[i])));
  return result;
}

/// Where a prefill ends: at the beginning, around the window's end and around the boundaries of tiles.
std::set<int64_t> splits(int64_t window, const std::vector<int64_t>& boundaries, int64_t length) {
  std::set<int64_t> result{0, 1, length - 1, length};
  for (const int64_t shift : {-1, 0, 1}) {
    if (window > 0) result.insert(window + shift);
    for (const int64_t boundary : boundaries) result.insert(boundary + shift);
  }
  return result;
}

struct Sequence {
  int64_t length;
  std::vector<int64_t> boundaries;
};

const std::vector<Sequence> sequences{{61, {8, 24}}, {150, {64, 128}}};

/// Mixers that work at any length are told a longest one of 11, which must not matter.
void check_aft_decode(const MixerCase& c, const Sequence& sequence, const Keys* keys = nullptr) {
  const auto built = built_mixer(c.config, /*causal=*/true, c.any_length ? 11 : sequence.length);
  if (keys != nullptr) assign_keys(*built.store, *keys);
  built.store->finalize();
  const Array x = exact_inputs(sequence.length);
  const Array y = built.module->forward(Var(x), Context::evaluation(decoded_batch, sequence.length)).value();
  const auto state = built.module->make_state(decoded_batch);
  for (const int64_t prefilled : splits(c.boundary, sequence.boundaries, sequence.length)) {
    state->reset();
    const double error = relative_error(decoded(*built.module, x, prefilled, *state), y, 1);
    CHECK_MESSAGE(error <= layer_tolerance, c.name, ", length ", sequence.length, ", prefill of ", prefilled, ": ",
                  error);
    state->reset();
    const std::vector<int64_t> pieces{prefilled / 2, prefilled - prefilled / 2, sequence.length - prefilled};
    const double in_three = relative_error(in_pieces(*built.module, x, pieces, *state), y, 1);
    CHECK_MESSAGE(in_three <= layer_tolerance, c.name, ", length ", sequence.length, ", prefills of ", prefilled / 2,
                  " tokens and up to token ", prefilled, ": ", in_three);
  }
}

TEST_CASE("decode equals forward for every variant, from every kind of prefill, past windows, tiles and max_length") {
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    for (const MixerCase& c : mixer_cases())
      for (const Sequence& sequence : sequences) check_aft_decode(c, sequence);
  }
}

TEST_CASE("decode equals forward, and is finite, with keys up to +-10^4 and with keys close together out there") {
  Array features = exact_inputs(sequences[0].length);
  for (int64_t i = 0; i < features.size(); i += width) features.mutable_data()[i] = 0;
  const double spread = largest(features);
  for (const Keys& keys :
       {Keys{"up to 30", 30 / spread, 0}, Keys{"up to 100", 100 / spread, 0}, Keys{"up to 10^4", 1e4 / spread, 0},
        Keys{"around 10^4", 4, 1e4}, Keys{"around -10^4", 4, -1e4}}) {
    INFO("keys " << keys.name);
    for (const MixerCase& c : mixer_cases()) check_aft_decode(c, sequences[0], &keys);
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
    CHECK(state->elements(0) == running);
    for (const int64_t seen : {c.window, c.window + 1, int64_t{256}, longest})
      CHECK(state->elements(seen) == running + c.window * per_token);
    if (c.window > 1) CHECK(state->elements(c.window - 1) == running + (c.window - 1) * per_token);
  }
  const auto full = built_mixer(full_config(PositionBias::factorised, plain), true, longest);
  const auto state = full.module->make_state(1);
  for (const int64_t seen : {int64_t{0}, int64_t{256}, longest}) CHECK(state->elements(seen) == (3 + 2 * seen) * width);
}

TEST_CASE("bidirectional mixers refuse to decode") {
  for (const MixerCase& c : mixer_cases()) {
    const auto built = built_mixer(c.config, /*causal=*/false, 8);
    CHECK_THROWS_WITH_AS(built.module->make_state(1), "aft: a bidirectional mixer does not decode", std::logic_error);
  }
}

TEST_CASE("past max_length, full and local refuse and say why; simple and conv go on") {
  const int64_t longest = 9;
  const Array x = normal_array({decoded_batch, longest + 1, width}, 13);
  const Var next(tokens(x, longest, longest + 1).reshape({decoded_batch, width}));
  for (const MixerCase& c : mixer_cases()) {
    INFO(c.name);
    const auto built = built_mixer(c.config, true, longest);
    const auto state = built.module->make_state(decoded_batch);
    if (c.any_length) {
      CHECK_NOTHROW(built.module->prefill(Var(x), *state));
      CHECK_NOTHROW(built.module->step(next, *state));
      continue;
    }
    CHECK_THROWS_AS(built.module->prefill(Var(x), *state), std::invalid_argument);
    CHECK_THROWS_AS(built.module->forward(Var(x), Context::evaluation(decoded_batch, longest + 1)),
                    std::invalid_argument);
    // A refused prefill has left the state as it was.
    Array y = decoded(*built.module, tokens(x, 0, longest), longest - 1, *state);
    state->reset();
    built.module->prefill(Var(tokens(x, 0, 4)), *state);
    CHECK_THROWS_AS(built.module->prefill(Var(tokens(x, 4, longest + 1)), *state), std::invalid_argument);
    CHECK(relative_error(built.module->prefill(Var(tokens(x, 4, longest)), *state).value(), tokens(y, 4, longest), 1) <=
          layer_tolerance);
    CHECK(relative_error(
              y, built.module->forward(Var(tokens(x, 0, longest)), Context::evaluation(decoded_batch, longest)).value(),
              1) <= layer_tolerance);
    CHECK_THROWS_WITH_AS(built.module->step(next, *state), "aft: token 9 is past the 9 positions of this mixer",
                         std::invalid_argument);
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
