#include <Random123/philox.h>
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "core/base/random.hpp"
#include "core/machine/parallel.hpp"
#include "core/ops/ops.hpp"
#include "support/arrays.hpp"

using namespace capstan;

TEST_CASE("Philox gives the published answers") {
  // The known-answer vectors of Random123 (kat_vectors, philox4x32 10 rounds).
  struct Known {
    r123::Philox4x32::ctr_type counter;
    r123::Philox4x32::key_type key;
    RandomWords words;
  };
  const std::vector<Known> known = {{{{0, 0, 0, 0}}, {{0, 0}}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                                    {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
                                     {{0xffffffff, 0xffffffff}},
                                     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
                                    {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
                                     {{0xa4093822, 0x299f31d0}},
                                     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (const Known& k : known) {
    // philox_key adds the stream to a mix of the seed: choose the stream that gives the key wanted.
    const uint64_t wanted = (uint64_t{k.key[1]} << 32) | k.key[0];
    const RandomKey key{0, wanted - philox_key({0, 0})};
    CHECK(philox_key(key) == wanted);
    CHECK(random_words(key, k.counter[0], k.counter[1], k.counter[2], k.counter[3]) == k.words);
  }
}

TEST_CASE("streams are reproducible, and differ by seed and path") {
  RandomStream a(random_key(1, "x")), b(random_key(1, "x")), c(random_key(2, "x")), d(random_key(1, "y"));
  int equal_c = 0, equal_d = 0;
  for (int i = 0; i < 1000; ++i) {
    const uint32_t word = a.word();
    CHECK(word == b.word());
    equal_c += word == c.word();
    equal_d += word == d.word();
  }
  CHECK(equal_c == 0);
  CHECK(equal_d == 0);
  // A stream that starts later goes on where the other is: four words per block.
  RandomStream early(random_key(1, "x")), late(random_key(1, "x"), 3);
  for (int i = 0; i < 12; ++i) early.word();
  CHECK(early.word() == late.word());
}

TEST_CASE("draws have the moments of their distributions") {
  RandomStream random(random_key(3, "moments"));
  constexpr int count = 200000;
  double mean = 0, square = 0, normal_mean = 0, normal_square = 0, normal_fourth = 0;
  std::vector<int> bins(7, 0);
  bool in_range = true;
  for (int i = 0; i < count; ++i) {
    const double u = random.uniform(), z = random.normal();
    in_range = in_range && u >= 0 && u < 1 && std::isfinite(z);
    mean += u, square += u * u;
    normal_mean += z, normal_square += z * z, normal_fourth += z * z * z * z;
    ++bins[random.below(7)];
  }
  CHECK(in_range);
  CHECK(std::fabs(mean / count - 0.5) < 0.004);
  CHECK(std::fabs(square / count - 1.0 / 3) < 0.004);
  CHECK(std::fabs(normal_mean / count) < 0.012);
  CHECK(std::fabs(normal_square / count - 1) < 0.016);
  CHECK(std::fabs(normal_fourth / count - 3) < 0.12);
  double chi_square = 0;
  for (const int bin : bins) chi_square += std::pow(bin - count / 7.0, 2) / (count / 7.0);
  CHECK(chi_square < 22.5);  // six degrees of freedom, p = 0.001
  CHECK_THROWS_AS(random.below(0), std::invalid_argument);
}

TEST_CASE("permuted is a permutation for every count, and differs by epoch and key") {
  const RandomKey key = random_key(5, "shuffle");
  for (uint64_t count : {1, 2, 3, 4, 5, 7, 16, 17, 63, 64, 65, 1000, 4097}) {
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t to = permuted(i, count, key, 2);
      CHECK(to < count);
      seen.insert(to);
    }
    CHECK(seen.size() == count);
  }
  int kept = 0, same_key = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    kept += permuted(i, 1000, key, 0) == permuted(i, 1000, key, 1);
    same_key += permuted(i, 1000, key, 0) == permuted(i, 1000, random_key(6, "shuffle"), 0);
  }
  CHECK(kept < 12);
  CHECK(same_key < 12);
  CHECK_THROWS_AS(permuted(5, 5, key, 0), std::invalid_argument);
  CHECK(permuted(0, uint64_t{1} << 40, key, 0) < (uint64_t{1} << 40));
}

TEST_CASE("a dropout mask depends on key, example, position, channel and step only") {
  const RandomKey key = random_key(1, "blocks.0");
  const auto mask_of = [&](const Shape& shape, const std::vector<int32_t>& examples, uint64_t step = 4,
                           uint64_t seed = 1) {
    const Ids ids(Shape{static_cast<int64_t>(examples.size())}, examples);
    return dropout(Var(Array(shape, real{1})), {0.25, RandomKey{seed, key.stream}, step, ids, {}}).value();
  };
  const Array base = mask_of({2, 5, 301}, {7, 3});
  const auto row = [](const Array& mask, int64_t b, int64_t t) {
    return mask.view((b * mask.dim(1) + t) * mask.dim(2), Shape{mask.dim(2)});
  };
  // Another place in the batch, more padding, fewer channels.
  const Array moved = mask_of({3, 9, 301}, {1, 3, 7});
  const Array narrow = mask_of({2, 5, 13}, {7, 3});
  for (int64_t t = 0; t < 5; ++t) {
    CHECK(identical(row(moved, 2, t), row(base, 0, t)));
    CHECK(identical(row(moved, 1, t), row(base, 1, t)));
    CHECK(identical(row(narrow, 0, t), row(base, 0, t).view(0, Shape{13})));
    CHECK_FALSE(identical(row(base, 0, t), row(base, 1, t)));
  }
  CHECK_FALSE(identical(row(base, 0, 0), row(base, 0, 1)));
  CHECK_FALSE(identical(base, mask_of({2, 5, 301}, {7, 3}, 5)));
  CHECK_FALSE(identical(base, mask_of({2, 5, 301}, {7, 3}, 4, 2)));
  // Positions that are given take the place of t.
  const Ids positions(Shape{1, 2}, {3, 0});
  const Array placed =
      dropout(Var(Array(Shape{1, 2, 301}, real{1})), {0.25, key, 4, Ids(Shape{1}, 7), positions}).value();
  CHECK(identical(row(placed, 0, 0), row(base, 0, 3)));
  CHECK(identical(row(placed, 0, 1), row(base, 0, 0)));
}

TEST_CASE("dropout draws the words of the counters, keeps at its rate and scales") {
  const RandomKey key = random_key(2, "d");
  const Ids examples(Shape{2}, {11, 12});
  const Array y = dropout(Var(Array(Shape{2, 3, 1000}, real{2})), {0.3, key, 6, examples, {}}).value();
  int64_t kept = 0;
  for (int64_t i = 0; i < y.size(); ++i) {
    const auto channel = static_cast<uint32_t>(i % 1000), t = static_cast<uint32_t>(i / 1000 % 3);
    const uint32_t word = random_words(key, static_cast<uint32_t>(examples[i / 3000]), t, channel / 4, 6)[channel % 4];
    const real expected = word >= 0.3 * 4294967296.0 ? real(2 * (1 / 0.7)) : 0;
    CHECK(std::fabs(y[i] - expected) < 1e-6);
    kept += y[i] != 0;
  }
  CHECK(std::fabs(static_cast<double>(kept) / 6000 - 0.7) < 0.024);
  const Var x(Array(Shape{2, 3}, real{1}));
  CHECK(dropout(x, {0, key, 0, {}, {}}).same(x));
  CHECK_THROWS_AS(dropout(x, {1, key, 0, examples, {}}), std::invalid_argument);
  CHECK_THROWS_AS(dropout(x, {-0.1, key, 0, examples, {}}), std::invalid_argument);
  CHECK_THROWS_AS(dropout(x, {NAN, key, 0, examples, {}}), std::invalid_argument);
  CHECK_THROWS_AS(dropout(x, {0.5, key, 0, Ids(Shape{3}, 1), {}}), std::invalid_argument);
}
