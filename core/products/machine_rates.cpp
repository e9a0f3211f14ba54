// A product after one of the same size as warm-up, and the median of five passes
// of a = b + 3 c. tests/core/products/test_machine_rates.cpp.
#include "core/products/machine_rates.hpp"

#include <chrono>
#include <vector>

#include "core/base/median.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/gemm.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

template <class Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

double product_rate(int64_t size) {
  const auto elements = static_cast<size_t>(size * size);
  const std::vector<real> a(elements, real(0.5)), b(elements, real(0.25));
  std::vector<real> c(elements);
  double seconds = 0;
  for (int round = 0; round < 2; ++round)
    seconds = seconds_of([&] { gemm(size, size, size, {a.data(), size}, {b.data(), size}, c.data(), size); });
  const auto n = static_cast<double>(size);
  return 2 * n * n * n / seconds;
}

double triad_rate(int64_t count) {
  const auto size = static_cast<size_t>(count);
  const std::vector<real> b(size, real(0.5)), c(size, real(0.25));
  std::vector<real> a(size);
  std::vector<double> rates(5);
  for (double& rate : rates) {
    const double seconds = seconds_of([&] {
      parallel_for(count, 1, [out = a.data(), left = b.data(), right = c.data()](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[i] = left[i] + real(3) * right[i];
      });
    });
    rate = 3.0 * static_cast<double>(size * sizeof(real)) / seconds;
  }
  return median(std::move(rates));
}

}  // namespace capstan::CAPSTAN_PRECISION
