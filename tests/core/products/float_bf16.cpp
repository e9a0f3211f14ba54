// Rounding to bf16, and products of bf16 numbers.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "core/kernels/elementwise.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/gemm.hpp"
#include "support/arrays.hpp"
#include "tests/support/products.hpp"

using namespace capstan;

namespace {

float float_of(uint32_t bits) {
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

bool is_nan(uint32_t bits) { return (bits & 0x7fffffff) > 0x7f800000; }

/// What the bits of a positive float stand for, in double; by hand, because threads take denormals for zeros. The bits
/// of infinity stand for the number that would come next.
double value_of(uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 23);
  const double significand = bits & 0x7fffff;
  return exponent == 0 ? std::ldexp(significand, -149) : std::ldexp(significand + 0x800000, exponent - 150);
}

/// The nearest of the two bf16 numbers around a float, found by comparing distances.
uint16_t nearest_bf16(uint32_t bits) {
  const uint32_t sign = bits & 0x80000000, size = bits & 0x7fffffff, below = size & 0xffff0000, above = below + 0x10000;
  const double down = value_of(size) - value_of(below), up = value_of(above) - value_of(size);
  const bool below_is_even = (below >> 16 & 1) == 0;
  const bool take_below = down < up || (down == up && below_is_even);
  return static_cast<uint16_t>((sign | (take_below ? below : above)) >> 16);
}

/// All 2^16 bf16 numbers, and beside each the floats where rounding turns.
ArrayOf<float> all_floats_near_bf16() {
  const std::vector<uint32_t> lower{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
  ArrayOf<float> numbers(Shape{0x10000, static_cast<int64_t>(lower.size())});
  float* out = numbers.mutable_data();
  for (uint32_t upper = 0; upper < 0x10000; ++upper)
    for (const uint32_t part : lower) *out++ = float_of(upper << 16 | part);
  return numbers;
}

std::vector<Bf16Backend> backends() {
  std::vector<Bf16Backend> result{Bf16Backend::floats};
  if (onednn_multiplies_bf16()) result.push_back(Bf16Backend::onednn);
  return result;
}

/// A matrix of bf16 numbers whose rows lie further apart than they are long, NaN between them; and the same in floats.
struct Matrix {
  Matrix(int64_t rows, int64_t columns, int64_t gap, uint64_t seed)
      : stride(columns + gap),
        numbers(Shape{rows, stride}, to_bf16(std::numeric_limits<float>::quiet_NaN())),
        floats(Shape{rows, columns}) {
    const Array drawn = random_array({rows, columns}, seed);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column) {
        const Bf16 rounded = to_bf16(drawn[row * columns + column]);
        numbers.mutable_data()[row * stride + column] = rounded;
        floats.mutable_data()[row * columns + column] = to_float(rounded);
      }
  }
  int64_t stride;
  Bf16Array numbers;
  Array floats;
};

struct Bf16ProductCase {
  int64_t m, n, k;
  int64_t a_gap = 0, b_gap = 0, c_gap = 0;
};

/// Ragged edges, odd depths (the CPU's instruction takes two at a time), one row, one column,
/// and sides long enough to be split.
const std::vector<Bf16ProductCase> product_cases = {
    {1, 1, 1},    {3, 5, 7, 2, 1, 4},     {1, 64, 33},  {64, 1, 33, 0, 0, 2}, {2, 300, 257},           {33, 31, 32},
    {64, 64, 64}, {65, 63, 127, 3, 1, 2}, {128, 48, 1}, {200, 130, 96},       {96, 210, 131, 0, 5, 0}, {512, 40, 72},
};

constexpr Transpose transposes[] = {Transpose::no, Transpose::yes};

}  // namespace

TEST_CASE("every bf16 number survives being a float; floats go to the nearest one, ties to even") {
  const ArrayOf<float> floats = all_floats_near_bf16();
  Bf16Array rounded(floats.shape());
  kernels::round_to_bf16(rounded.mutable_data(), floats.data(), floats.size());
  int64_t wrong = 0;
  for (int64_t i = 0; i < floats.size(); ++i) {
    const uint32_t bits = bits_of(floats[i]);
    const uint16_t got = rounded[i].bits;
    // NaN keeps its sign and the payload's upper part, and is a quiet one.
    const uint16_t expected = is_nan(bits)                        ? static_cast<uint16_t>(bits >> 16 | 0x40)
                              : (bits & 0x7fffffff) == 0x7f800000 ? static_cast<uint16_t>(bits >> 16)
                                                                  : nearest_bf16(bits);
    if (got != expected && ++wrong < 10)
      MESSAGE("float " << std::hex << bits << " became " << got << ", not " << expected);
  }
  CHECK(wrong == 0);

  for (int64_t i = 0; i < rounded.size(); ++i)
    if (bits_of(to_float(rounded[i])) != static_cast<uint32_t>(rounded[i].bits) << 16) ++wrong;
  CHECK(wrong == 0);
}

TEST_CASE("rounding to bf16: named numbers") {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<std::pair<float, float>> expected = {
      {1.0f, 1.0f},
      {1.00390625f, 1.0f},       // 1 + 2^-8, halfway: to the even one below
      {1.01171875f, 1.015625f},  // 1 + 3 * 2^-8, halfway: to the even one above
      {1.0039064f, 1.0078125f},  // just above halfway
      {-1.00390625f, -1.0f},
      {0.0f, 0.0f},
      {infinity, infinity},
      {-infinity, -infinity},
      {std::numeric_limits<float>::max(), infinity},
      {3.3895314e38f, 3.3895314e38f},  // the largest bf16 number
  };
  for (const auto& [from, to] : expected) CHECK(to_float(to_bf16(from)) == to);
  CHECK(std::signbit(to_float(to_bf16(-0.0f))));
  CHECK(std::isnan(to_float(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
  CHECK(std::isnan(to_float(to_bf16(float_of(0x7f800001)))));  // whose upper half is that of infinity
  CHECK(to_bf16(float_of(1)).bits == 0);
  CHECK(to_bf16(float_of(0x00018000)).bits == 2);  // denormals round like all others
}

TEST_CASE("products of bf16 are those of the same numbers as floats: shapes, strides, transposes, sums, threads") {
  const KeptProducts restored;
  for (const Bf16Backend backend : backends()) {
    for (const Bf16ProductCase& s : product_cases) {
      for (const Transpose ta : transposes) {
        for (const Transpose tb : transposes) {
          const bool a_flips = ta == Transpose::yes, b_flips = tb == Transpose::yes;
          const Matrix a(a_flips ? s.k : s.m, a_flips ? s.m : s.k, s.a_gap, 1),
              b(b_flips ? s.n : s.k, b_flips ? s.k : s.n, s.b_gap, 2);
          for (const float beta : {0.0f, 1.0f}) {
            const Array start = random_array({s.m, s.n + s.c_gap}, 3);
            const auto filled = [&] {
              Array c = start.clone();
              if (beta == 0)  // the old content must not be read
                for (int64_t row = 0; row < s.m; ++row)
                  std::fill_n(c.mutable_data() + row * start.dim(1), s.n, std::numeric_limits<float>::quiet_NaN());
              return c;
            };
            set_threads(1);
            Array expected = filled();
            gemm(s.m, s.n, s.k, MatrixView{a.floats.data(), a.floats.dim(1), ta},
                 MatrixView{b.floats.data(), b.floats.dim(1), tb}, expected.mutable_data(), start.dim(1), 1, beta);
            set_bf16_backend(backend);
            for (const int count : {1, 2}) {
              set_threads(count);
              Array c = filled();
              gemm(s.m, s.n, s.k, Bf16View{a.numbers.data(), a.stride, ta}, Bf16View{b.numbers.data(), b.stride, tb},
                   c.mutable_data(), start.dim(1), beta);
              CHECK_MESSAGE(difference(c, expected) < 5e-6,
                            "backend " << static_cast<int>(backend) << " m " << s.m << " n " << s.n << " k " << s.k
                                       << (a_flips ? " A'" : " A") << (b_flips ? " B'" : " B") << " beta " << beta);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("products of bf16: nothing to add up, nothing to compute, and factors of C other than 0 and 1") {
  const Matrix a(4, 4, 0, 1);
  const Bf16View view{a.numbers.data(), a.stride};
  Array c(Shape{4, 4}, 3.0f);
  gemm(4, 4, 0, view, view, c.mutable_data(), 4, 1);
  CHECK(identical(c, Array(Shape{4, 4}, 3.0f)));
  gemm(4, 4, 0, view, view, c.mutable_data(), 4, 0);
  CHECK(identical(c, Array(Shape{4, 4}, 0.0f)));
  gemm(0, 4, 4, view, view, nullptr, 4);
  CHECK_THROWS_AS(gemm(4, 4, 4, view, view, c.mutable_data(), 4, 0.5f), std::invalid_argument);
}

TEST_CASE("more shapes than a thread keeps ready, each met twice, inside and outside parallel regions") {
  const KeptProducts restored;
  for (const Bf16Backend backend : backends()) {
    set_bf16_backend(backend);
    constexpr int64_t longest = 600;
    const Bf16Array ones(Shape{longest}, to_bf16(1));
    const auto length_of = [&](int64_t k) {  // the sum of k ones
      float sum = -1;
      gemm(1, 1, k, Bf16View{ones.data(), longest}, Bf16View{ones.data(), 1}, &sum, 1);
      return sum;
    };
    int64_t wrong = 0;
    for (int64_t k = 1; k <= longest; ++k) wrong += length_of(k) != static_cast<float>(k);
    std::vector<float> sums(longest);
    set_threads(2);
    parallel_units(longest, [&](int64_t i) { sums[static_cast<size_t>(i)] = length_of(i + 1); });
    for (int64_t k = 1; k <= longest; ++k) wrong += sums[static_cast<size_t>(k - 1)] != static_cast<float>(k);
    CHECK(wrong == 0);
  }
}

TEST_CASE("who computes products of bf16 can be chosen, and where there is an obstacle floats do it") {
  const KeptProducts restored;
  CHECK(bf16_backend() == (bf16_obstacle().empty() ? Bf16Backend::onednn : Bf16Backend::floats));
  set_bf16_backend(Bf16Backend::floats);
  CHECK(bf16_backend() == Bf16Backend::floats);
  if (onednn_multiplies_bf16()) {
    set_bf16_backend(Bf16Backend::onednn);
    CHECK(bf16_backend() == Bf16Backend::onednn);
  } else {
    CHECK_THROWS_AS(set_bf16_backend(Bf16Backend::onednn), std::invalid_argument);
  }
}

TEST_CASE("rounding to bf16 writes the elements asked for, and none after them") {
  constexpr float untouched = 77;
  const KeptProducts restored;
  set_threads(2);
  for (const size_t count : {0, 1, 15, 16, 17, 16383, 16384, 16385, 40001}) {
    INFO(count, " elements");
    const std::vector<float> numbers(count, 1.5f);
    std::vector<Bf16> rounded(count + 1, to_bf16(untouched));
    kernels::round_to_bf16(rounded.data(), numbers.data(), static_cast<int64_t>(count));
    CHECK(std::all_of(rounded.begin(), rounded.end() - 1, [](Bf16 x) { return to_float(x) == 1.5f; }));
    CHECK(to_float(rounded[count]) == untouched);
  }
}
