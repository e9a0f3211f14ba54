// The Fastformer mixer: what every mixer must do, and a test for each defect of the public implementations that could
// be made here (the op alone: tests/nn/systems/fastformer/test_op.cpp).
#include <doctest/doctest.h>

#include "core/base/error.hpp"
#include "tests/nn/mixer/mixer_suite.hpp"
#include "tests/support/ragged.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

constexpr auto all_features = FastformerLogits::all_features, per_head = FastformerLogits::per_head;

std::vector<MixerCase> fastformer_cases() {
  return {{"fastformer", FastformerConfig{5, all_features, false, true}},
          {"fastformer, biases", FastformerConfig{5, all_features, true, true}},
          {"fastformer per head, biases, no output projection", FastformerConfig{10, per_head, true, false}},
          {"fastformer per head, one head", FastformerConfig{1, per_head, false, true}},
          {"fastformer, a head per channel", FastformerConfig{width, all_features, false, false}},
          {"fastformer, own values, biases", FastformerConfig{5, all_features, true, true, FastformerValue::own}},
          {"fastformer per head, own values", FastformerConfig{10, per_head, false, false, FastformerValue::own}}};
}

TEST_CASE("fastformer does what every mixer must") {
  for (const MixerCase& c : fastformer_cases()) check_mixer(c);
}

TEST_CASE("fastformer's state holds 2 (D + 2H) elements at any position") {
  for (const MixerCase& c : fastformer_cases()) {
    const auto built = built_mixer(c.config, true, 10);
    const int64_t heads = std::get<FastformerConfig>(c.config).heads;
    const auto state = built.module->make_state(1);
    for (const int64_t seen : {0, 1, 4096}) CHECK(state->elements(seen) == 2 * (width + 2 * heads));
  }
}

TEST_CASE("a width that the heads do not divide is refused") {
  ParamStore store;
  CHECK_THROWS_WITH_AS(make_mixer(Scope(store, 1), {width, 8, true, 1}, FastformerConfig{}),
                       "fastformer: width 50 is not a multiple of 4 heads", std::invalid_argument);
  FastformerConfig none;
  none.heads = 0;
  ParamStore other;
  CHECK_THROWS_AS(make_mixer(Scope(other, 1), {width, 8, true, 1}, none), std::invalid_argument);
}

/// Without output projection and biases, so that outputs can be written down.
Built<Mixer> bare_fastformer(FastformerLogits logits = all_features, int64_t heads = 5) {
  return built_mixer(FastformerConfig{heads, logits, false, false}, /*causal=*/false, 1);
}

using Rows = std::vector<std::vector<double>>;  // (T, D)

/// q and k of one document.
std::pair<Rows, Rows> projections(const ParamStore& store, const Array& x) {
  const Array qk = linear(Var(x), store.find("to_qk.weight").var).value();
  std::pair<Rows, Rows> result;
  for (int64_t t = 0; t < x.dim(1); ++t)
    for (Rows* rows : {&result.first, &result.second}) {
      const real* const from = qk.data() + t * 2 * width + (rows == &result.second ? width : 0);
      rows->emplace_back(from, from + width);
    }
  return result;
}

std::vector<double> mean_of(const Rows& rows) {
  std::vector<double> mean(width, 0);
  for (const auto& row : rows)
    for (size_t c = 0; c < row.size(); ++c) mean[c] += row[c] / static_cast<double>(rows.size());
  return mean;
}

/// W_r (key * q_t) + q_t for every token, (1, T, D).
Array outputs(const ParamStore& store, const std::vector<double>& key, const Rows& q) {
  const Array to_r = store.find("to_r.weight").var.value();
  Array y(Shape{1, static_cast<int64_t>(q.size()), width});
  for (size_t t = 0; t < q.size(); ++t)
    for (int64_t row = 0; row < width; ++row) {
      double sum = q[t][static_cast<size_t>(row)];
      for (size_t c = 0; c < key.size(); ++c)
        sum += static_cast<double>(to_r[row * width + static_cast<int64_t>(c)]) * key[c] * q[t][c];
      y.mutable_data()[static_cast<int64_t>(t) * width + row] = static_cast<real>(sum);
    }
  return y;
}

void clear_logits(const ParamStore& store) {
  for (const char* const name : {"query_logits.weight", "key_logits.weight"}) {
    const Var& weight = store.find(name).var;
    weight.assign(Array::zeros(weight.shape()));
  }
}

/// Makes W_r the identity, so that no feature reaches another after the pools.
void keep_features(const ParamStore& store) {
  Array identity = Array::zeros({width, width});
  for (int64_t c = 0; c < width; ++c) identity.mutable_data()[c * width + c] = 1;
  store.find("to_r.weight").var.assign(identity);
}

TEST_CASE("softmax over tokens, not over features, and the global key pools p, not raw keys") {
  const auto built = bare_fastformer();
  clear_logits(*built.store);  // both pools are means over the tokens
  const Array x = normal_array({1, 11, width}, 3);
  const auto [q, k] = projections(*built.store, x);
  std::vector<double> key = mean_of(q), raw_key = mean_of(k);
  for (size_t c = 0; c < key.size(); ++c) key[c] *= raw_key[c];
  const Array y = forward(*built.module, x, Segments::full(1, 11));
  CHECK(relative_error(y, outputs(*built.store, key, q), 1) <= layer_tolerance);
  CHECK(relative_error(y, outputs(*built.store, raw_key, q), 1) > 0.01);
}

TEST_CASE("a token with the largest logit is what a pool returns") {
  const auto built = bare_fastformer(all_features, 1);
  clear_logits(*built.store);
  const Array x = normal_array({1, 11, width}, 4);
  const auto [q, k] = projections(*built.store, x);
  size_t chosen = 0;
  for (size_t t = 1; t < q.size(); ++t) chosen = q[t][2] > q[chosen][2] ? t : chosen;
  Array logits = Array::zeros({1, width});
  logits.mutable_data()[2] = real{1e5};
  built.store->find("query_logits.weight").var.assign(logits);
  std::vector<double> key = mean_of(k);
  for (size_t c = 0; c < key.size(); ++c) key[c] *= q[chosen][c];
  CHECK(relative_error(forward(*built.module, x, Segments::full(1, 11)), outputs(*built.store, key, q), 1) <=
        layer_tolerance);
}

TEST_CASE("padding is never pooled, and the mask is not inverted") {
  const Array x = normal_array({1, 13, width}, 5);
  const Segments segments = segments_of_lengths({9}, 13);
  for (const bool causal : {false, true}) {
    const auto built = built_mixer(fastformer_cases()[1].config, causal, 1);
    const Array y = forward(*built.module, x, segments);
    const auto with_token = [&](int64_t t) {
      Array changed = x.clone();
      for (int64_t c = 0; c < width; ++c) changed.mutable_data()[t * width + c] = real(1e3) - changed[t * width + c];
      return forward(*built.module, changed, segments);
    };
    for (int64_t t = 9; t < 13; ++t) CHECK(identical(with_token(t), y));
    for (int64_t t = 0; t < 8; ++t)
      CHECK(relative_error(tokens(with_token(t), 8, 9), tokens(y, 8, 9), 1) > 0.01);  // seen by the last token
  }
}

TEST_CASE("softmax runs over tokens within each head, not over the heads") {
  const auto built = bare_fastformer(per_head, 5);
  const Array x = normal_array({1, 11, width}, 6);
  keep_features(*built.store);
  const Array y = forward(*built.module, x, Segments::full(1, 11));
  Array logits = built.store->find("query_logits.weight").var.value().clone();
  for (int64_t c = 0; c < width / 5; ++c) logits.mutable_data()[3 * width / 5 + c] += 1;  // of head 3 only
  built.store->find("query_logits.weight").var.assign(logits);
  const Array z = forward(*built.module, x, Segments::full(1, 11));
  for (int64_t i = 0; i < y.size(); ++i) {
    const bool of_head = i % width / (width / 5) == 3;
    CHECK((z[i] == y[i]) != of_head);
  }
}

TEST_CASE("logits of all features read the other heads' features, logits per head do not") {
  for (const FastformerLogits logits : {all_features, per_head}) {
    const auto built = bare_fastformer(logits, 5);
    CHECK(built.store->find("query_logits.weight").var.shape() == Shape{5, logits == per_head ? width / 5 : width});
    const Array x = normal_array({1, 11, width}, 7);
    keep_features(*built.store);
    const Array y = forward(*built.module, x, Segments::full(1, 11));
    Array to_qk = built.store->find("to_qk.weight").var.value().clone();
    for (int64_t i = 0; i < width; ++i) to_qk.mutable_data()[i] += 1;  // query feature 0, of head 0
    built.store->find("to_qk.weight").var.assign(to_qk);
    const Array z = forward(*built.module, x, Segments::full(1, 11));
    bool others_same = true;
    for (int64_t i = 0; i < y.size(); ++i)
      if (i % width >= width / 5) others_same = others_same && z[i] == y[i];
    CHECK(others_same == (logits == per_head));
  }
}

TEST_CASE("every layer has logit vectors of its own") {
  ParamStore store;
  LayerConfig config;
  config.mixer = fastformer_cases()[0].config;
  const Block first(Scope(store, 1) / "blocks" / 0, {width, 8, true, 1}, config, 0),
      second(Scope(store, 1) / "blocks" / 1, {width, 8, true, 1}, config, 0);
  const Var &one = store.find("blocks.0.mixer.query_logits.weight").var,
            &other = store.find("blocks.1.mixer.query_logits.weight").var;
  CHECK(!one.same(other));
  CHECK(!identical(one.value(), other.value()));
}

TEST_CASE("running the bidirectional layer on prefixes is not the causal layer") {
  const auto causal = built_mixer(fastformer_cases()[0].config, true, 1),
             bidirectional = built_mixer(fastformer_cases()[0].config, false, 1);
  const Array x = normal_array({1, 11, width}, 8);
  const Array y = forward(*causal.module, x, Segments::full(1, 11)),
              z = forward(*bidirectional.module, x, Segments::full(1, 11));
  CHECK(relative_error(tokens(y, 10, 11), tokens(z, 10, 11), 1) > 0.01);
  CHECK(relative_error(forward(*bidirectional.module, tokens(x, 0, 1), Segments::full(1, 1)), tokens(y, 0, 1), 1) <=
        layer_tolerance);  // with a single token they agree
}

TEST_CASE("what fastformer computes for a token does not depend on the length") {
  const auto built = built_mixer(fastformer_cases()[0].config, true, 1);
  for (const int64_t length : {1, 1000}) {
    CHECK(built.module->cost(length).mixing_flops == 9 * width);  // two averages, two products, a sum
    CHECK(built.module->cost(length).decode_flops == 9 * width);
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
