// The linear part of FLASH whose products are in bf16, beside the same in floats.
#include <doctest/doctest.h>

#include "nn/systems/flash/chunk_linear.hpp"
#include "tests/support/agreement.hpp"
#include "tests/support/bf16_products.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/ragged.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

/// The value, then the gradients of q, k and v.
std::vector<Array> results_in(const std::vector<Array>& values, const Segments& segments, ChunkLinearOptions options,
                              bool bf16) {
  options.bf16 = bf16;
  const Run made =
      run([&](const auto& v) { return chunk_linear_attention(v[0], v[1], v[2], segments, options); }, values, false);
  return {made.value, made.grads[0], made.grads[1], made.grads[2]};
}

std::vector<Array> three_inputs(int64_t batch, int64_t length) {
  return {normal_array({batch, length, 24}, 1), normal_array({batch, length, 24}, 2),
          normal_array({batch, length, 40}, 3)};
}

}  // namespace

TEST_CASE("chunk_linear_attention in bf16: within 2 % of floats, rounded where chunks are whole, on any threads") {
  const Bf16Products products;
  if (!products.possible()) return;
  for (const bool causal : {true, false})
    for (const int64_t chunk : {32, 13})
      for (const ChunkNormaliser normaliser : {ChunkNormaliser::counted, ChunkNormaliser::chunks}) {
        const ChunkLinearOptions options{chunk, causal, normaliser};
        INFO("causal ", causal, ", chunk ", chunk);
        const Segments segments = segments_of_lengths({112, 90, 7}, 112);
        const std::vector<Array> values = three_inputs(3, 112);
        const auto on = [&](int count, bool bf16) {
          const Threads threads(count);
          return results_in(values, segments, options, bf16);
        };
        const std::vector<Array> expected = on(2, false), got = on(2, true);
        for (size_t i = 0; i < got.size(); ++i) CHECK_MESSAGE(relative_error(got[i], expected[i]) < 0.02, i);
        CHECK(same_bits(got, expected) == (causal && chunk == 13));
        CHECK(same_bits(got, on(1, true)));
      }
}

TEST_CASE("chunk_linear_attention in bf16: later tokens of 10^4 leave every bit of earlier outputs alone") {
  const Bf16Products products;
  if (!products.possible()) return;
  const ChunkLinearOptions options{32, /*causal=*/true, ChunkNormaliser::counted};
  const Segments segments = Segments::full(1, 128);
  const std::vector<Array> values = three_inputs(1, 128);
  const Array y = results_in(values, segments, options, true).front();
  for (const int64_t cut : {1, 31, 32, 64, 127}) {
    std::vector<Array> changed;
    for (const Array& value : values) {
      Array later = value.clone();
      for (int64_t n = cut * later.dim(2); n < later.size(); ++n) later.mutable_data()[n] = real{1e4} * (1 - later[n]);
      changed.push_back(later);
    }
    const Array z = results_in(changed, segments, options, true).front();
    CHECK_MESSAGE(std::equal(y.data(), y.data() + cut * y.dim(2), z.data()), cut);
  }
}
