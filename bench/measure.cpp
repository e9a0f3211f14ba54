#include "bench/measure.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include "core/kernels/simd.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "core/products/machine_rates.hpp"

namespace capstan::bench {

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

double sgemm_rate() { return product_rate(); }

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
        for (int64_t i = 1; i < chains; ++i) partial[0] += partial[i];
        float lanes[kernels::simd::lanes];
        partial[0].store_unaligned(lanes);
        for (const float lane : lanes) sums[static_cast<size_t>(thread_index())] += lane;
      });
    }));
    for (const float sum : sums) total += sum;
  }
  // The result depends on the sum, or the compiler would remove the loop.
  return std::isnan(total) ? total : spread_of(seconds).median;
}

int64_t take_peak_bytes() {
  int64_t peak = 0;
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") status >> peak;
  std::ofstream("/proc/self/clear_refs") << 5;  // resets VmHWM (man 5 proc)
  return peak * 1024;
}

}  // namespace capstan::bench
