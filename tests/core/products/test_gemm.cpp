#include <doctest/doctest.h>

#include <cmath>

#include "core/products/gemm.hpp"
#include "support/arrays.hpp"
#include "tests/support/threads.hpp"

using namespace capstan;

namespace {

constexpr double gemm_tolerance = sizeof(real) == 8 ? 1e-13 : 2e-6;

real at(const Array& matrix, Transpose transpose, int64_t row, int64_t column, int64_t stride) {
  return transpose == Transpose::no ? matrix[row * stride + column] : matrix[column * stride + row];
}

/// C = alpha A B + beta C, three loops in double.
Array reference(int64_t m, int64_t n, int64_t k, const Array& a, Transpose ta, const Array& b, Transpose tb,
                const Array& c, double alpha, double beta) {
  Array result(Shape{m, n});
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += static_cast<double>(at(a, ta, i, l, a.dim(1))) * static_cast<double>(at(b, tb, l, j, b.dim(1)));
      result.mutable_data()[i * n + j] =
          static_cast<real>(alpha * sum + (beta == 0 ? 0 : beta * static_cast<double>(c[i * n + j])));
    }
  }
  return result;
}

}  // namespace

TEST_CASE("gemm agrees with three loops: transposes, ragged sizes, beta, one and two threads") {
  struct Size {
    int64_t m, n, k;
  };
  const std::vector<Size> sizes = {{1, 1, 1},      {3, 5, 7}, {17, 33, 35}, {130, 67, 41},
                                   {65, 131, 129}, {4, 5, 0}, {1, 300, 64}, {300, 1, 64}};
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    for (const Size& s : sizes) {
      for (const Transpose ta : {Transpose::no, Transpose::yes}) {
        for (const Transpose tb : {Transpose::no, Transpose::yes}) {
          for (const double beta : {0.0, 1.0, -0.5}) {
            const Array a = random_array(ta == Transpose::no ? Shape{s.m, s.k} : Shape{s.k, s.m}, 1);
            const Array b = random_array(tb == Transpose::no ? Shape{s.k, s.n} : Shape{s.n, s.k}, 2);
            // With beta = 0 the old content must not be read.
            Array c = beta == 0 ? Array(Shape{s.m, s.n}, real(NAN)) : random_array({s.m, s.n}, 3);
            const Array expected = reference(s.m, s.n, s.k, a, ta, b, tb, c, 1.5, beta);
            gemm(s.m, s.n, s.k, {a.data(), std::max<int64_t>(a.dim(1), 1), ta},
                 {b.data(), std::max<int64_t>(b.dim(1), 1), tb}, c.mutable_data(), s.n, real(1.5),
                 static_cast<real>(beta));
            CHECK_MESSAGE(difference(c, expected) < gemm_tolerance,
                          "m " << s.m << " n " << s.n << " k " << s.k << " beta " << beta);
          }
        }
      }
    }
  }
}

TEST_CASE("gemm writes inside its columns only") {
  const Array a = random_array({20, 9}), b = random_array({9, 11}, 2);
  Array c(Shape{20, 15}, real{7});
  gemm(20, 11, 9, {a.data(), 9}, {b.data(), 11}, c.mutable_data() + 2, 15);
  const Array expected = reference(20, 11, 9, a, Transpose::no, b, Transpose::no, a, 1, 0);
  for (int64_t row = 0; row < 20; ++row)
    for (int64_t column = 0; column < 15; ++column) {
      const bool inside = column >= 2 && column < 13;
      const double value = inside ? static_cast<double>(expected[row * 11 + column - 2]) : 7;
      CHECK(std::fabs(static_cast<double>(c[row * 15 + column]) - value) < 1e-5);
    }
}

TEST_CASE("batched gemm: steps, a shared operand, one and two threads") {
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    for (const int64_t batch : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{7}}) {
      const Array a = random_array({batch, 17, 9}), b = random_array({9, 40}, 2);
      Array c(Shape{batch, 17, 40}, real{1});
      gemm_batched(batch, 17, 40, 9, {a.data(), 9}, 17 * 9, {b.data(), 40}, 0, c.mutable_data(), 40, 17 * 40, 1, 1);
      for (int64_t i = 0; i < batch; ++i) {
        const Array one = a.rows(i, i + 1).reshape({17, 9});
        const Array expected =
            reference(17, 40, 9, one, Transpose::no, b, Transpose::no, Array(Shape{17, 40}, real{1}), 1, 1);
        CHECK(difference(c.rows(i, i + 1).reshape({17, 40}), expected) < gemm_tolerance);
      }
    }
  }
}

TEST_CASE("an operand's rows may lie apart") {
  const Array wide = random_array({12, 30});
  Array c(Shape{12, 12});
  gemm(12, 12, 8, {wide.data() + 3, 30}, {wide.data() + 3, 30, Transpose::yes}, c.mutable_data(), 12);
  for (int64_t i = 0; i < 12; ++i)
    for (int64_t j = 0; j < 12; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < 8; ++l)
        sum += static_cast<double>(wide[i * 30 + 3 + l]) * static_cast<double>(wide[j * 30 + 3 + l]);
      CHECK(std::fabs(static_cast<double>(c[i * 12 + j]) - sum) < 1e-5);
    }
}
