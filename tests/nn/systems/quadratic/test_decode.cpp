// One query against a cache of keys and values: the last row of attention as the composition defines it.
#include <doctest/doctest.h>

#include <cmath>

#include "nn/systems/quadratic/composed.hpp"
#include "nn/systems/quadratic/kernels/decode.hpp"
#include "nn/systems/quadratic/kernels/tile.hpp"
#include "nn/systems/quadratic/op.hpp"
#include "tests/support/compare.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

/// The last token's output of every head, from the cache's kernel.
Array decode_last(const Array& q, const Array& k, const Array& v, const Array& bias, const AttentionOptions& options) {
  const int64_t length = q.dim(1), heads = options.heads, keys = q.dim(2) / heads, values = v.dim(2) / heads;
  Array y(Shape{1, 1, v.dim(2)});
  for (int64_t head = 0; head < heads; ++head) {
    std::vector<real> row;  // b_(i-j) by ascending j
    for (int64_t j = 0; j < length && !bias.empty(); ++j)
      row.push_back(bias[head * bias.dim(1) + bias.dim(1) / 2 + length - 1 - j]);
    kernels::attention_decode(
        {k.data() + head * keys, v.data() + head * values, k.dim(2), v.dim(2), length, keys, values}, options.kernel,
        static_cast<real>(options.scale), row.empty() ? nullptr : row.data(), 3,
        q.data() + (length - 1) * q.dim(2) + head * keys, y.mutable_data() + head * values);
  }
  return y;
}

}  // namespace

TEST_CASE("attention from a cache equals the last row of the composition, also for keys of 10^4") {
  for (const auto& kernel : enum_names(AttentionKernel{})) {
    for (const bool biased : {false, true}) {
      for (const int64_t length : {1, 3, 64, 65, 150}) {
        for (const double spread : {0.5, 1e4}) {
          AttentionOptions options;
          options.kernel = kernel.value;
          options.heads = 2;
          options.causal = true;
          options.scale = 0.4;
          options.output_scale = Array(Shape{1, length}, real{3});
          const Array q = normal_array({1, length, 2 * 37}, 1), k = normal_array({1, length, 2 * 37}, 2, spread),
                      v = normal_array({1, length, 2 * 70}, 3), bias = normal_array({2, 2 * length + 3}, 4);
          const Array expected =
              attention_composed(Var(q), Var(k), Var(v), biased ? Var(bias) : Var(), Segments::full(1, length), options)
                  .value();
          const Array last = expected.reshape(Shape{length, 2 * 70}).rows(length - 1, length);
          const double error =
              relative_error(decode_last(q, k, v, biased ? bias : Array(), options), last.reshape(Shape{1, 1, 2 * 70}));
          // Logits of 10^4 carry their own rounding of 10^4 ulps into a softmax.
          const double allowed = (spread > 1 ? 1e3 : 1) * fused_tolerance;
          CHECK_MESSAGE(error <= allowed, kernel.name, ", bias ", biased, ", length ", length, ", keys ", spread, ": ",
                        error);
        }
      }
    }
  }
}

TEST_CASE("attention from an empty cache is 0") {
  for (const auto& kernel : enum_names(AttentionKernel{})) {
    real y[3] = {1, NAN, 2};
    const real q[2] = {1, 2};
    kernels::attention_decode({nullptr, nullptr, 2, 3, 0, 2, 3}, kernel.value, 1, nullptr, 5, q, y);
    for (const real value : y) CHECK(value == 0);
  }
}
