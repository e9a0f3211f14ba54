// Dropout of attention weights: equal to the composition, the same mask whatever surrounds a weight.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/nn/systems/quadratic/op_cases.hpp"
#include "tests/support/agreement.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/ragged.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

/// What attention() takes of each key: with values that are the rows of a unit matrix. (B, T, H T)
Array weights(const AttentionCase& c, const Segments& segments) {
  const int64_t length = segments.length();
  Array v = Array::zeros(Shape{segments.batch(), length, c.heads * length});
  for (int64_t row = 0; row < segments.batch(); ++row)
    for (int64_t t = 0; t < length; ++t)
      for (int64_t head = 0; head < c.heads; ++head)
        v.mutable_data()[((row * length + t) * c.heads + head) * length + t] = 1;
  const Shape keys{segments.batch(), length, 4 * c.heads};
  const Array q = normal_array(keys, 1, 0.5), k = normal_array(keys, 2, 0.5);
  return attention(Var(q), Var(k), Var(v), Var(), segments, c.options(segments)).value();
}

}  // namespace

TEST_CASE("attention with dropout equals its composition, every option, tiles of any length, on one thread and two") {
  const Segments segments = ragged_segments(29);
  for (const int64_t tile : {1, 3, 8, 0}) {
    INFO("tile " << tile);
    for (const AttentionCase& c : attention_cases(tile, 0.3)) check_composition(c, segments, 5, 7);
  }
  for (const bool causal : {true, false}) {
    const AttentionCase long_case{AttentionKernel::softmax, causal, 0, 2, true, true, 0, 0.3};
    check_composition(long_case, ragged_segments(150), 17, 19);
    // Tiles past the columns of one call of Philox.
    check_composition({AttentionKernel::softmax, causal, 0, 1, false, false, 300, 0.3}, Segments::full(1, 310), 4, 4);
  }
}

TEST_CASE("a share of the weights is dropped after the normalisation, and the others are scaled") {
  const int64_t length = 200;
  const Segments segments = Segments::full(2, length);
  for (const double rate : {0.1, 0.5}) {
    AttentionCase c{AttentionKernel::softmax, false, 0, 3, false, false};
    const Array all = weights(c, segments);
    c.dropout = rate;
    const Array kept = weights(c, segments);
    int64_t dropped = 0;
    for (int64_t i = 0; i < all.size(); ++i) {
      dropped += kept[i] == 0 ? 1 : 0;
      if (kept[i] != 0) REQUIRE(kept[i] == doctest::Approx(double{all[i]} / (1 - rate)).epsilon(1e-4));
    }
    const double share = static_cast<double>(dropped) / static_cast<double>(all.size());
    CHECK(std::abs(share - rate) < 5 * std::sqrt(rate / static_cast<double>(all.size())));
  }
}

TEST_CASE("the mask depends on head, example and step, not on tiles, padding, batch mates or the direction") {
  const int64_t length = 70;
  AttentionCase c{AttentionKernel::squared_relu, false, 0, 2, false, false, 0, 0.4};
  const auto mask = [&](const AttentionCase& of, const Segments& segments) {
    const Array found = weights(of, segments);
    const AttentionCase plain{of.kernel, of.causal, of.chunk, of.heads, false, false, of.tile};
    const Array all = weights(plain, segments);
    std::vector<int> bits;  // of the first row: kept, dropped, or 0 without dropout
    for (int64_t i = 0; i < segments.length(); ++i)
      for (int64_t head = 0; head < of.heads; ++head)
        for (int64_t j = 0; j < segments.length(); ++j) {
          const int64_t at = (i * of.heads + head) * segments.length() + j;
          bits.push_back(all[at] == 0 ? 2 : found[at] == 0 ? 1 : 0);
        }
    return bits;
  };
  const auto agree = [](const std::vector<int>& a, const std::vector<int>& b) {
    bool same = a.size() == b.size();
    for (size_t i = 0; same && i < a.size(); ++i) same = a[i] == b[i] || a[i] == 2 || b[i] == 2;
    return same;
  };
  const std::vector<int> wanted = mask(c, Segments::full(1, length));
  for (const int64_t tile : {5, 64}) {
    AttentionCase other = c;
    other.tile = tile;
    CHECK(mask(other, Segments::full(1, length)) == wanted);
  }
  for (const bool causal : {true, false}) {
    AttentionCase other = c;
    other.causal = causal;
    CHECK(agree(mask(other, Segments::full(3, length)), wanted));
    CHECK(agree(mask(other, segments_of_lengths({50, 70}, length)), wanted));
    other.chunk = 9;
    CHECK(agree(mask(other, Segments::full(1, length)), wanted));
  }
  // Heads differ, and so do steps and examples.
  const Segments one = Segments::full(1, 64);
  const Var ones(Array(Shape{1, 64, 2}, real{1}));
  AttentionOptions options = c.options(one);
  const auto output = [&] { return attention(ones, ones, ones, Var(), one, options).value(); };
  const Array first = output();
  int64_t equal = 0;
  for (int64_t i = 0; i < 64; ++i) equal += first[2 * i] == first[2 * i + 1] ? 1 : 0;
  CHECK(equal < 32);
  options.dropout.step = 8;
  CHECK(!identical(output(), first));
  options.dropout.step = 7;
  CHECK(identical(output(), first));
  options.dropout.examples.mutable_data()[0] += 1;
  CHECK(!identical(output(), first));
}

TEST_CASE("dropout of attention weights refuses what does not fit") {
  const Segments segments = Segments::full(2, 3);
  const Var x(Array::zeros(Shape{2, 3, 4}));
  AttentionOptions options;
  options.dropout = weight_dropout(Segments::full(3, 3), 0.5);
  CHECK_THROWS_AS(attention(x, x, x, Var(), segments, options), std::invalid_argument);
  options.dropout = weight_dropout(segments, 1);
  CHECK_THROWS_AS(attention(x, x, x, Var(), segments, options), std::invalid_argument);
}
