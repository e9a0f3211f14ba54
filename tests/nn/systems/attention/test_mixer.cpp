// Multi-head attention: what every mixer must do, and what is special to it.
#include <doctest/doctest.h>

#include <cmath>

#include "core/fused/linear.hpp"
#include "core/fused/rotary.hpp"
#include "core/ops/ops.hpp"
#include "nn/systems/attention/mixer.hpp"
#include "nn/systems/quadratic/composed.hpp"
#include "nn/systems/quadratic/kernels/decode.hpp"
#include "nn/systems/quadratic/key_value_cache.hpp"
#include "nn/systems/quadratic/op.hpp"
#include "tests/nn/systems/attention/cases.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

TEST_CASE("attention does what every mixer must do, with all options") {
  for (const MixerCase& c : attention_cases()) check_mixer(c);
}

/// The mixer from primitives, one head after the other.
Var composed_mixer(const ParamStore& store, const AttentionConfig& config, bool causal, const Var& x,
                   const Segments& segments) {
  const int64_t head = width / config.heads;
  const auto parameter = [&](const std::string& name) { return store.find(name).var; };
  const std::vector<Var> weights = split(parameter("to_qkv.weight"), 0, {width, width, width});
  const auto heads_of = [&](size_t part, const std::string& bias, bool given) {
    const Var all = linear(x, weights[part], given ? parameter(bias) : Var());
    return split(all, 2, std::vector<int64_t>(static_cast<size_t>(config.heads), head));
  };
  const auto q = heads_of(0, "query_bias", config.bias), k = heads_of(1, "", false),
             v = heads_of(2, "value_bias", config.bias);
  const auto turned = [&](const Var& part) {
    return config.rotary.enabled ? rotary(part, segments.positions(), config.rotary.options()) : part;
  };
  AttentionOptions options;
  options.causal = causal;
  options.scale = 1 / std::sqrt(static_cast<double>(head));
  std::vector<Var> outputs;
  for (size_t h = 0; h < q.size(); ++h)
    outputs.push_back(attention_composed(turned(q[h]), turned(k[h]), v[h], Var(), segments, options));
  const Var y = concatenate(outputs, 2);
  return config.output_projection
             ? linear(y, parameter("to_out.weight"), config.bias ? parameter("to_out.bias") : Var())
             : y;
}

TEST_CASE("the attention mixer equals its composition head by head, in value and every gradient") {
  const Segments segments = ragged_segments(40);
  for (const MixerCase& c : attention_cases()) {
    const AttentionConfig& config = std::get<AttentionConfig>(c.config);
    for (const bool causal : {true, false}) {
      INFO(c.name << ", causal " << causal);
      const auto built = built_mixer(config, causal, 40);
      const Array x = normal_array({4, 40, width}, 3), dy = normal_array({4, 40, width}, 4);
      const auto run_one = [&](bool fused) {
        for (const Param& param : built.store->params()) param.var.clear_grad();
        const Var input = Var::leaf(x);
        TapeScope scope;
        const Var y = fused ? built.module->forward(input, {segments})
                            : composed_mixer(*built.store, config, causal, input, segments);
        scope.tape().backward(std::vector<Var>{y}, {dy});
        Run result{y.value(), {input.grad()}};
        for (const Param& param : built.store->params()) result.grads.push_back(param.var.grad().clone());
        return result;
      };
      const Run fused = run_one(true), composed = run_one(false);
      CHECK(relative_error(fused.value, composed.value) <= fused_tolerance);
      for (size_t i = 0; i < fused.grads.size(); ++i)
        CHECK(relative_error(fused.grads[i], composed.grads[i]) <= fused_tolerance);
    }
  }
}

TEST_CASE("heads and turned features must fit the width") {
  ParamStore store;
  const auto make = [&](int64_t heads, bool turned) {
    AttentionConfig config;
    config.heads = heads;
    config.rotary.enabled = turned;
    return make_mixer(Scope(store, 1) / "mixer", {width, 8, true, 1}, config);
  };
  CHECK_THROWS_AS(make(4, false), std::invalid_argument);
  CHECK_THROWS_AS(make(10, true), std::invalid_argument);  // 5 features
}

TEST_CASE("what attention costs and holds") {
  AttentionConfig config;
  config.heads = 5;
  const auto built = built_mixer(config, true, 8);
  const MixerCost cost = built.module->cost(100);
  CHECK(cost.mixing_flops == 100 * 2 * width);  // 2 products of 2 flops over half the tokens
  CHECK(cost.decode_flops == 100 * 4 * width);
  CHECK(cost.saved_elements == 4 * width + 2 * 5);
  CHECK(built.module->make_state(3)->elements(100) == 200 * width);
}

TEST_CASE("a cache of keys and values keeps what it holds while it grows, each sequence at a position of its own") {
  KeyValueCache cache(2, 3, 2);
  std::vector<real> keys, values;  // of row 1, token by token
  for (int64_t t = 0; t < 70; ++t) {
    const Array k = normal_array({2, 5}, static_cast<uint64_t>(t)),
                v = normal_array({2, 2}, 100 + static_cast<uint64_t>(t));
    cache.append({t / 2, t}, 2, 1, k.data() + 1, 5, v.data(), 2);  // keys are part of wider rows
    keys.insert(keys.end(), k.data() + 6, k.data() + 9);
    values.insert(values.end(), v.data() + 2, v.data() + 4);
    const kernels::AttentionCache held = cache.part(1, t + 1, 0, 3, 0, 2);
    CHECK(std::equal(keys.begin(), keys.end(), held.keys));
    CHECK(std::equal(values.begin(), values.end(), held.values));
  }
  KeyValueCache other(3, 3, 2);
  other.copy(2, cache, 1, 70);
  CHECK(std::equal(keys.begin(), keys.end(), other.part(2, 70, 0, 3, 0, 2).keys));
  other.copy(0, other, 2, 70);
  CHECK(std::equal(values.begin(), values.end(), other.part(0, 70, 0, 3, 0, 2).values));
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
