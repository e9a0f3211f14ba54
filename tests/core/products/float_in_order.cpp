// Portable products and what they are made of: the same bits everywhere.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/array/array.hpp"
#include "core/base/math.hpp"
#include "core/base/random.hpp"
#include "core/io/hash.hpp"
#include "core/kernels/activation.hpp"
#include "core/kernels/random.hpp"
#include "core/products/gemm.hpp"
#include "tests/support/products.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// No portable products at this level of the CPU.
bool cannot() {
  if (portable_obstacle().empty()) return false;
  MESSAGE("skipped: " << portable_obstacle());
  return true;
}

std::vector<float> numbers(int64_t count, uint64_t stream) {
  RandomStream random({7, stream});
  std::vector<float> all(static_cast<size_t>(count));
  for (float& number : all) number = static_cast<float>(2 * random.uniform() - 1);
  return all;
}

std::string hash_of(const std::vector<float>& values) {
  return hash_hex({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
}

/// What an element is: a chain of fused additions in the order of k, in blocks of 256.
float element(const Product<float>& p, int64_t row, int64_t column, float before) {
  float result = before;
  for (int64_t first = 0; first < p.k; first += 256) {
    float sum = 0;
    for (int64_t k = first; k < std::min(first + 256, p.k); ++k)
      sum = std::fma(p.a.data[p.a.transposed() ? k * p.a.stride + row : row * p.a.stride + k],
                     p.b.data[p.b.transposed() ? column * p.b.stride + k : k * p.b.stride + column], sum);
    const float beta = first == 0 ? p.beta : 1;
    result = beta == 0 ? p.alpha * sum : beta * result + p.alpha * sum;
  }
  return result;
}

TEST_CASE("portable products: every element is its chain of additions, for all shapes, strides and cuts") {
  if (cannot()) return;
  const KeptProducts restored;
  set_gemm_backend(GemmBackend::portable);
  struct Shape3 {
    int64_t m, n, k;
  };
  int64_t wrong = 0, cases = 0;
  for (const Shape3& s : {Shape3{1, 1, 1}, Shape3{13, 33, 7}, Shape3{5, 16, 257}, Shape3{98, 70, 300},
                          Shape3{31, 520, 24}, Shape3{1, 40, 600}, Shape3{130, 1, 9}})
    for (const Transpose of_a : {Transpose::no, Transpose::yes})
      for (const Transpose of_b : {Transpose::no, Transpose::yes})
        for (const float beta : {0.0F, 1.0F, 0.5F}) {
          const float alpha = beta == 1 ? 1.0F : 0.25F;
          const int64_t a_stride = (of_a == Transpose::yes ? s.m : s.k) + 3,
                        b_stride = (of_b == Transpose::yes ? s.k : s.n) + 1, c_stride = s.n + 2;
          const std::vector<float> a = numbers(a_stride * std::max(s.m, s.k), 1),
                                   b = numbers(b_stride * std::max(s.n, s.k), 2);
          std::vector<float> c = numbers(c_stride * s.m, 3);
          const std::vector<float> old = c;
          if (beta == 0) std::fill(c.begin(), c.end(), std::numeric_limits<float>::quiet_NaN());
          const Product<float> p{s.m,      s.n,   s.k, {a.data(), a_stride, of_a}, {b.data(), b_stride, of_b}, c.data(),
                                 c_stride, alpha, beta};
          gemm(s.m, s.n, s.k, p.a, p.b, c.data(), c_stride, alpha, beta);
          ++cases;
          for (int64_t row = 0; row < s.m; ++row)
            for (int64_t column = 0; column < s.n; ++column) {
              const auto at = static_cast<size_t>(row * c_stride + column);
              const float expected = element(p, row, column, old[at]);
              wrong += std::memcmp(&c[at], &expected, sizeof expected) != 0;
            }
        }
  CHECK(cases == 84);
  CHECK(wrong == 0);
}

TEST_CASE("functions, sums and random numbers of kernels have these bits on every CPU with fused products") {
  if (cannot()) return;
  const std::vector<float> x = numbers(10007, 4);
  std::vector<float> wide(x.size()), positive(x.size()), y(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    wide[i] = 95 * x[i] * std::abs(x[i]), positive[i] = std::ldexp(1.5F + x[i] / 2, static_cast<int>(i % 200) - 100);
  const auto of = [&](kernels::Function function, const std::vector<float>& in) {
    kernels::apply(function, y.data(), in.data(), static_cast<int64_t>(in.size()));
    return hash_of(y);
  };
  CHECK(of(kernels::Function::exp, wide) == "a834d4afba03cba1880a585ebbd18d4f");
  CHECK(of(kernels::Function::log, positive) == "31031cc18ea49581023ef2102a81beb5");
  CHECK(of(kernels::Function::sigmoid, wide) == "724f455096706779a5e0860f89c3fc80");
  CHECK(of(kernels::Function::tanh, x) == "1dea3e6e3d0ce600ecba8b430f0db082");
  std::vector<float> sums;
  for (int64_t count = 0; count < 80; ++count) sums.push_back(kernels::dot(x.data(), wide.data(), count));
  CHECK(hash_of(sums) == "4175e6ef324782a96bdb5530f9ac2b3d");
  kernels::normal_numbers(y.data(), static_cast<int64_t>(y.size()), 11, 5, 0.5);
  CHECK(hash_of(y) == "524c65fafeb64d357422dbd1859f0926");
  const double scalars[] = {math::exp(-1.3),      math::log(0.7), math::log1p(-0.2),
                            math::pow(0.999, 77), math::sin(1e5), math::cos(3e4)};
  CHECK(hash_hex({reinterpret_cast<const char*>(scalars), sizeof scalars}) == "fe9178c04fb0490a1c6be2025f8d0297");
}

TEST_CASE("exp, log, log1p, tanh: right to the last digits, and at their limits") {
  double worst[3] = {};
  for (const float base : numbers(20000, 5)) {
    const float inputs[] = {87 * base, std::exp2(120 * base), 3 * base};
    const kernels::Function functions[] = {kernels::Function::exp, kernels::Function::log, kernels::Function::tanh};
    for (int i = 0; i < 3; ++i) {
      float y;
      kernels::apply(functions[i], &y, &inputs[i], 1);
      const auto in = static_cast<double>(inputs[i]);
      const double exact = i == 0 ? std::exp(in) : i == 1 ? std::log(in) : std::tanh(in);
      worst[i] = std::max(worst[i],
                          std::abs(static_cast<double>(y) - exact) / std::max(std::abs(exact), i == 1 ? 1e-2 : 1e-30));
    }
  }
  CHECK(worst[0] < 2e-7);
  CHECK(worst[1] < 2e-7);
  CHECK(worst[2] < 3e-7);
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  struct Limit {
    kernels::Function function;
    float x, y;
  };
  for (const Limit& limit :
       {Limit{kernels::Function::exp, -infinity, 0}, Limit{kernels::Function::exp, infinity, infinity},
        Limit{kernels::Function::exp, -1000, 0}, Limit{kernels::Function::exp, 89, infinity},
        Limit{kernels::Function::exp, 0, 1}, Limit{kernels::Function::exp, nan, nan},
        Limit{kernels::Function::log, 0, -infinity}, Limit{kernels::Function::log, infinity, infinity},
        Limit{kernels::Function::log, -1, nan}, Limit{kernels::Function::log, nan, nan},
        Limit{kernels::Function::log, 1, 0}, Limit{kernels::Function::tanh, infinity, 1},
        Limit{kernels::Function::tanh, -infinity, -1}, Limit{kernels::Function::tanh, nan, nan},
        Limit{kernels::Function::sigmoid, -infinity, 0}, Limit{kernels::Function::sigmoid, infinity, 1}}) {
    float y;
    kernels::apply(limit.function, &y, &limit.x, 1);
    CAPTURE(limit.x);
    CHECK((std::isnan(limit.y) ? std::isnan(y) : y == limit.y));
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION
