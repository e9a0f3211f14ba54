#include <doctest/doctest.h>
#include <omp.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "core/products/gemm.hpp"
#include "support/arrays.hpp"
#include "tests/support/products.hpp"

using namespace capstan;

namespace {

constexpr float nan_float = std::numeric_limits<float>::quiet_NaN();

const bool no_onednn = onednn_version().empty();

/// A matrix whose rows lie further apart than they are long; NaN, or another filling, between them.
struct Spaced {
  Spaced(int64_t rows, int64_t columns, int64_t gap, uint64_t seed, float filling = nan_float)
      : stride(columns + gap), numbers(Shape{rows, stride}, filling) {
    const Array dense = random_array({rows, columns}, seed);
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(dense.data() + row * columns, columns, numbers.mutable_data() + row * stride);
  }
  int64_t stride;
  Array numbers;
};

struct ProductCase {
  int64_t m, n, k;
  int64_t a_gap = 0, b_gap = 0, c_gap = 0;
};

/// Every way the choice between the libraries can go, ragged edges on both sides of the boundaries of their kernels,
/// and one row or column, for which both have kernels of their own.
const std::vector<ProductCase> cases = {
    {1, 1, 1},
    {3, 5, 7, 2, 1, 4},
    {33, 31, 32},
    {64, 64, 64},
    {64, 128, 122, 1, 2, 3},
    {64, 128, 123},
    {48, 129, 80, 0, 3},
    {1, 256, 300},
    {2, 300, 257},
    {300, 1, 256, 5, 5, 5},
    {257, 2, 130},
    {64, 512, 96, 0, 8},
    {128, 64, 512},
    {65, 513, 130},
    {48, 96, 383},
    {49, 97, 385},
    {31, 200, 770},
    {200, 390, 390},
    {4, 2000, 20},
    {2000, 4, 20, 1, 1, 1},
    {1024, 130, 514},
    {40, 130, 514, 984},
    {256, 20, 514, 1024, 1},
    {40, 1024, 514, 984},
    {512, 1030, 40},
};
const std::vector<std::pair<float, float>> factors = {{1, 0}, {1, 1}, {-1.5f, 0}, {0.25f, -0.5f}};

struct Operands {
  Operands(const ProductCase& s, Transpose ta, Transpose tb)
      : a(ta == Transpose::no ? s.m : s.k, ta == Transpose::no ? s.k : s.m, s.a_gap, 1),
        b(tb == Transpose::no ? s.k : s.n, tb == Transpose::no ? s.n : s.k, s.b_gap, 2),
        ta_(ta),
        tb_(tb) {}
  Spaced a, b;
  MatrixView a_view() const { return {a.numbers.data(), a.stride, ta_}; }
  MatrixView b_view() const { return {b.numbers.data(), b.stride, tb_}; }

 private:
  Transpose ta_, tb_;
};

constexpr Transpose both[] = {Transpose::no, Transpose::yes};

}  // namespace

TEST_CASE("the back end can be chosen, and one that is not built in cannot") {
  const KeptProducts restored;
  CHECK(gemm_backend() == (no_onednn ? GemmBackend::openblas : GemmBackend::onednn));
  if (no_onednn) {
    CHECK_THROWS_AS(set_gemm_backend(GemmBackend::onednn), std::invalid_argument);
    CHECK(gemm_backend() == GemmBackend::openblas);
  }
  set_gemm_backend(GemmBackend::openblas);
  CHECK(gemm_backend() == GemmBackend::openblas);
}

TEST_CASE("oneDNN and OpenBLAS agree: shapes, strides, transposes, factors, NaN in C, one and two threads" *
          doctest::skip(no_onednn)) {
  const KeptProducts restored;
  for (const ProductCase& s : cases) {
    for (const Transpose ta : both) {
      for (const Transpose tb : both) {
        const Operands operands(s, ta, tb);
        const Spaced start(s.m, s.n, s.c_gap, 3, 7);
        for (const auto& factor : factors) {
          const auto alpha = factor.first, beta = factor.second;  // which lambdas can capture
          const auto result = [&](GemmBackend backend, int count) {
            set_gemm_backend(backend);
            set_threads(count);
            Array c(start.numbers.shape());
            std::copy_n(start.numbers.data(), c.size(), c.mutable_data());
            if (beta == 0)  // the old content must not be read
              for (int64_t row = 0; row < s.m; ++row)
                std::fill_n(c.mutable_data() + row * start.stride, s.n, nan_float);
            gemm(s.m, s.n, s.k, operands.a_view(), operands.b_view(), c.mutable_data(), start.stride, alpha, beta);
            return c;
          };
          const Array expected = result(GemmBackend::openblas, 1);
          REQUIRE(std::isfinite(expected[0]));
          for (const int count : {1, 2}) {
            const Array onednn = result(GemmBackend::onednn, count);
            CHECK_MESSAGE(difference(onednn, expected) < 5e-6,
                          "m " << s.m << " n " << s.n << " k " << s.k << (ta == Transpose::yes ? " A'" : " A")
                               << (tb == Transpose::yes ? " B'" : " B") << " alpha " << alpha << " beta " << beta);
            CHECK(identical(onednn, result(GemmBackend::onednn, count)));
          }
          CHECK(difference(result(GemmBackend::openblas, 2), expected) < 5e-6);
        }
      }
    }
  }
}

TEST_CASE("rows of a product do not depend on the numbers in later rows of A, nor columns on later columns of B") {
  const KeptProducts restored;
  for (const GemmBackend backend : {GemmBackend::openblas, GemmBackend::onednn}) {
    if (backend == GemmBackend::onednn && no_onednn) continue;
    set_gemm_backend(backend);
    for (const ProductCase& s : cases) {
      if (s.m < 2 || s.n < 2) continue;
      for (const Transpose ta : both) {
        for (const Transpose tb : both) {
          const auto result = [&](int64_t kept_rows, int64_t kept_columns, float value) {
            Operands operands(s, ta, tb);
            for (int64_t depth = 0; depth < s.k; ++depth) {
              for (int64_t row = kept_rows; row < s.m; ++row)
                operands.a.numbers.mutable_data()[ta == Transpose::no ? row * operands.a.stride + depth
                                                                      : depth * operands.a.stride + row] = value;
              for (int64_t column = kept_columns; column < s.n; ++column)
                operands.b.numbers.mutable_data()[tb == Transpose::no ? depth * operands.b.stride + column
                                                                      : column * operands.b.stride + depth] = value;
            }
            Array c(Shape{s.m, s.n});
            gemm(s.m, s.n, s.k, operands.a_view(), operands.b_view(), c.mutable_data(), s.n);
            Array kept(Shape{kept_rows, kept_columns});
            for (int64_t row = 0; row < kept_rows; ++row)
              std::copy_n(c.data() + row * s.n, kept_columns, kept.mutable_data() + row * kept_columns);
            return kept;
          };
          const int64_t rows = std::max<int64_t>(1, s.m * 3 / 5), columns = std::max<int64_t>(1, s.n * 3 / 5);
          const Array expected = result(rows, columns, 0.5f);
          for (const float value : {-1e4f, nan_float})
            CHECK_MESSAGE(identical(result(rows, columns, value), expected),
                          "m " << s.m << " n " << s.n << " k " << s.k);
        }
      }
    }
  }
}

TEST_CASE(
    "a product has the same bits on any number of threads; so it has inside a parallel loop; OpenMP's settings stay") {
  const KeptProducts restored;
  const int openmp_threads = omp_get_max_threads();
  for (const GemmBackend backend : {GemmBackend::openblas, GemmBackend::onednn}) {
    if (backend == GemmBackend::onednn && no_onednn) continue;
    set_gemm_backend(backend);
    for (const ProductCase& s : cases) {
      const Operands operands(s, Transpose::no, Transpose::yes);
      const auto run = [&](Array& c) {
        gemm(s.m, s.n, s.k, operands.a_view(), operands.b_view(), c.mutable_data(), s.n);
      };
      set_threads(1);
      Array expected(Shape{s.m, s.n}), expected_inside(Shape{s.m, s.n});
      run(expected);
      {
        const OneThread alone;
        run(expected_inside);
      }
      for (const int threads_used : {1, 2, 3, 5}) {
        set_threads(threads_used);
        Array whole(Shape{s.m, s.n});
        run(whole);
        CHECK(identical(whole, expected));
        std::vector<Array> results(4);
        for (Array& c : results) c = Array(Shape{s.m, s.n});
        parallel_units(4, [&](int64_t unit) { run(results[static_cast<size_t>(unit)]); });
        for (const Array& c : results) CHECK(identical(c, expected_inside));
      }
      CHECK(omp_get_max_threads() == openmp_threads);
    }
  }
}

TEST_CASE("more threads than OpenBLAS has work memory for take turns") {
  const KeptProducts restored;
  set_gemm_backend(GemmBackend::openblas);
  constexpr int64_t size = 48, products = 2100;
  const Array a = random_array({size, size}, 1), b = random_array({size, size}, 2);
  const auto product = [&] {
    Array c(Shape{size, size});
    gemm(size, size, size, {a.data(), size}, {b.data(), size}, c.mutable_data(), size);
    return std::vector<float>(c.data(), c.data() + c.size());
  };
  std::vector<float> once;
  parallel_units(2, [&](int64_t unit) {
    if (unit == 0) once = product();
  });
  set_threads(700);
  CHECK(max_blas_products() < threads());
  reserve_blas_memory();
  std::atomic<int> wrong{0};
  parallel_units(products, [&](int64_t) { wrong += product() == once ? 0 : 1; });
  CHECK(wrong == 0);
}
