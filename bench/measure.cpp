#include "bench/measure.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include "core/array.hpp"
#include "core/gemm.hpp"
#include "core/kernels/simd.hpp"
#include "core/parallel.hpp"

namespace capstan::bench {

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

double sgemm_rate() {
  constexpr int64_t n = 2048;
  static const Array a(Shape{n, n}, 0.5f), b(Shape{n, n}, 0.25f);
  static Array c(Shape{n, n});
  return 2.0 * n * n * n / seconds_of([] { gemm(n, n, n, {a.data(), n}, {b.data(), n}, c.mutable_data(), n); });
}

double triad_rate() {
  constexpr int64_t count = 64 << 20;
  const Array b(Shape{count}, 0.5f), c(Shape{count}, 0.25f);
  Array a(Shape{count}, 0.f);
  float* const out = a.mutable_data();
  std::vector<double> rates;
  for (int round = 0; round < 5; ++round) {
    const double seconds = seconds_of([&] {
      parallel_for(count, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[i] = b.data()[i] + 3.f * c.data()[i];
      });
    });
    rates.push_back(3.0 * count * sizeof(float) / seconds);
  }
  return spread_of(rates).median;
}

double read_seconds(const float* numbers, int64_t count) {
  using kernels::simd::Batch;
  constexpr int64_t chains = 8, block = chains * kernels::simd::lanes;
  std::vector<double> seconds;
  float total = 0;
  for (int round = 0; round < 9; ++round) {
    std::vector<float> sums(static_cast<size_t>(threads()), 0.f);
    seconds.push_back(seconds_of([&] {
      parallel_for(count / block, 1, [&](int64_t begin, int64_t end) {
        Batch partial[chains];
        for (Batch& sum : partial) sum = Batch(0.f);
        for (const float* at = numbers + begin * block; at < numbers + end * block; at += block)
          for (int64_t i = 0; i < chains; ++i) partial[i] += Batch::load_unaligned(at + i * kernels::simd::lanes);
        for (const Batch& sum : partial) sums[static_cast<size_t>(thread_index())] += kernels::simd::sum(sum);
      });
    }));
    for (const float sum : sums) total += sum;
  }
  // The sum is looked at, so that it must be formed.
  return std::isnan(total) ? total : spread_of(seconds).median;
}

int64_t take_peak_bytes() {
  int64_t peak = 0;
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") status >> peak;
  std::ofstream("/proc/self/clear_refs") << 5;
  return peak * 1024;
}

}  // namespace capstan::bench
