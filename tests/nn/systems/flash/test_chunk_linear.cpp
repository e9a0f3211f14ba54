// The linear part of mixed chunk attention against the composition that defines it, and what must hold of it anyway.
#include <doctest/doctest.h>

#include <algorithm>

#include "nn/systems/flash/chunk_linear.hpp"
#include "nn/systems/flash/chunk_linear_composed.hpp"
#include "tests/nn/systems/flash/chunk_linear_cases.hpp"
#include "tests/support/agreement.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/ragged.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

constexpr int64_t keys = 19, values = 35;  // past two SIMD registers of floats, and no multiple of one

void check_fused(const ChunkLinearCase& c, const Segments& segments) {
  const Shape qk{segments.batch(), segments.length(), keys}, v{segments.batch(), segments.length(), values};
  check_agreement(
      c.name, [&](const auto& in) { return chunk_linear_attention(in[0], in[1], in[2], segments, c.options); },
      [&](const auto& in) { return chunk_linear_attention_composed(in[0], in[1], in[2], segments, c.options); },
      {qk, qk, v});
}

struct ChunkInputs {
  Array q, k, v;
};

ChunkInputs inputs(int64_t batch, int64_t length) {
  return {normal_array({batch, length, keys}, 1), normal_array({batch, length, keys}, 2),
          normal_array({batch, length, values}, 3)};
}

Array apply(const ChunkInputs& in, const Segments& segments, const ChunkLinearOptions& options) {
  return chunk_linear_attention(Var(in.q), Var(in.k), Var(in.v), segments, options).value();
}

/// Value and gradients of q, k, v.
std::vector<Array> all_of(const ChunkInputs& in, const Segments& segments, const ChunkLinearOptions& options) {
  const Run result = run([&](const auto& v) { return chunk_linear_attention(v[0], v[1], v[2], segments, options); },
                         {in.q, in.k, in.v}, false);
  return {result.value, result.grads[0], result.grads[1], result.grads[2]};
}

bool is_zero(const Array& array) {
  return std::all_of(array.data(), array.data() + array.size(), [](real x) { return x == 0; });
}

}  // namespace

TEST_CASE("chunk_linear_attention equals its composition, in value and gradients") {
  for (const ChunkLinearCase& c : chunk_linear_cases({1, 5, 8, 29, 256})) {
    check_fused(c, Segments::full(1, 29));
    check_fused(c, Segments::full(3, 16));
    check_fused(c, ragged_segments(29));
  }
}

TEST_CASE("chunk_linear_attention: products large enough to be shared among threads") {
  const Segments segments = Segments::full(1, 211);
  const Shape qk{1, 211, 64}, v{1, 211, 128};
  for (const ChunkLinearCase& c : chunk_linear_cases({64}))
    check_agreement(
        c.name, [&](const auto& in) { return chunk_linear_attention(in[0], in[1], in[2], segments, c.options); },
        [&](const auto& in) { return chunk_linear_attention_composed(in[0], in[1], in[2], segments, c.options); },
        {qk, qk, v});
}

TEST_CASE("chunk_linear_attention: one token, one chunk, and padding alone") {
  for (const ChunkLinearCase& c : chunk_linear_cases({1, 4})) {
    check_fused(c, Segments::full(3, 1));
    check_fused(c, Segments::full(2, 3));
    for (const Array& array : all_of(inputs(2, 5), Segments(Ids(Shape{2, 5}, 0)), c.options))
      CHECK_MESSAGE(is_zero(array), c.name);
  }
}

TEST_CASE("the first chunk of a causal document is 0 and its queries get no gradient: no 0/0") {
  for (const ChunkLinearCase& c : chunk_linear_cases({6})) {
    if (!c.options.causal) continue;
    const std::vector<Array> all = all_of(inputs(1, 15), Segments::full(1, 15), c.options);
    const auto part = [&](size_t i, int64_t begin, int64_t end) {
      return all[i].reshape(all[i].shape().without(0)).rows(begin, end);
    };
    CHECK_MESSAGE((is_zero(part(0, 0, 6)) && is_zero(part(1, 0, 6))), c.name);
    CHECK_MESSAGE((is_zero(part(2, 12, 15)) && is_zero(part(3, 12, 15))), c.name);  // no later chunk reads the last
    CHECK_FALSE(is_zero(part(0, 6, 7)));
  }
}

TEST_CASE("the causal global term does not grow with position") {
  // Constant keys and values: every query must get q . k v whatever precedes it.
  const int64_t length = 96;
  const ChunkInputs ones{Array(Shape{1, length, keys}, real{1}), Array(Shape{1, length, keys}, real{1}),
                         Array(Shape{1, length, values}, real{1})};
  for (const ChunkNormaliser normaliser : {ChunkNormaliser::counted, ChunkNormaliser::chunks}) {
    const Array y = apply(ones, Segments::full(1, length), {8, true, normaliser});
    for (int64_t i = 8 * values; i < y.size(); ++i) CHECK(y[i] == doctest::Approx(keys).epsilon(1e-6));
  }
}

TEST_CASE("causality: later chunks, whatever their size, leave earlier outputs bit-identical") {
  const int64_t length = 29;
  for (const ChunkLinearCase& c : chunk_linear_cases({1, 8})) {
    if (!c.options.causal) continue;
    const ChunkInputs in = inputs(1, length);
    const Array y = apply(in, Segments::full(1, length), c.options);
    for (const int64_t cut : {1, 7, 8, 20, 28}) {
      for (const double size : {1.0, 1e4}) {
        ChunkInputs changed{in.q.clone(), in.k.clone(), in.v.clone()};
        for (Array* const array : {&changed.q, &changed.k, &changed.v})
          for (int64_t i = cut * array->dim(2); i < array->size(); ++i)
            array->mutable_data()[i] = static_cast<real>(size * (0.7 - array->data()[i]));
        const Array z = apply(changed, Segments::full(1, length), c.options);
        CHECK_MESSAGE(std::equal(y.data(), y.data() + cut * values, z.data()), c.name, " cut ", cut);
      }
    }
  }
}

TEST_CASE("a packed or padded document gets what it gets alone: chunks begin at its position 0") {
  const int64_t valid = 19, length = 40;
  const ChunkInputs alone = inputs(1, valid);
  for (const ChunkLinearCase& c : chunk_linear_cases({1, 4, 6, 64})) {
    const std::vector<Array> expected = all_of(alone, Segments::full(1, valid), c.options);
    for (const int64_t left : {0, 3, 17}) {
      ChunkInputs batch{normal_array({2, length, keys}, 4, 30), normal_array({2, length, keys}, 5, 30),
                        normal_array({2, length, values}, 6, 30)};  // wild numbers in the padding and in the mates
      Ids ids(Shape{2, length}, 0);
      std::fill_n(ids.mutable_data(), 30, 1);
      std::fill_n(ids.mutable_data() + length + left, valid, 3);
      std::fill_n(ids.mutable_data() + length + left + valid, 4, 9);
      const auto put = [&](const Array& from, Array& to) {
        std::copy_n(from.data(), from.size(), to.mutable_data() + (length + left) * from.dim(2));
      };
      put(alone.q, batch.q);
      put(alone.k, batch.k);
      put(alone.v, batch.v);
      const Array y = apply(batch, Segments(ids), c.options).reshape(Shape{2 * length, values});
      const Array mine = y.rows(length + left, length + left + valid).reshape(Shape{1, valid, values});
      CHECK_MESSAGE(relative_error(mine, expected[0], 1) <= fused_tolerance, c.name, " left ", left);
    }
  }
}

TEST_CASE("chunk_linear_attention refuses what does not fit, naming it") {
  const auto zeros = [](const Shape& shape) { return Var(Array::zeros(shape)); };
  const Segments segments = Segments::full(2, 6);
  const Var q = zeros({2, 6, 3}), v = zeros({2, 6, 5});
  CHECK_THROWS_WITH_AS(chunk_linear_attention(q, q, v, segments, {0, true}),
                       "chunk_linear_attention: chunk must be at least 1, got 0", std::invalid_argument);
  CHECK_THROWS_AS(chunk_linear_attention(q, zeros({2, 6, 4}), v, segments, {}), std::invalid_argument);
  CHECK_THROWS_AS(chunk_linear_attention(q, q, zeros({2, 5, 5}), segments, {}), std::invalid_argument);
  CHECK_THROWS_AS(chunk_linear_attention(zeros({2, 5, 3}), zeros({2, 5, 3}), zeros({2, 5, 5}), segments, {}),
                  std::invalid_argument);
}
