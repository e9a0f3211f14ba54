// What the machine can do, measured in the process that is judged by it, and how times are summed up. All programs of
// bench/ use it.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace capstan::bench {

template <class Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The median, lowest and highest of some values.
struct Spread {
  double median, low, high;
};
Spread spread_of(std::vector<double> values);

/// FLOP/s of one sgemm at 2048^3, all threads.
double sgemm_rate();
/// Seconds to read `count` floats once, all threads: the least a decoding step can take.
double read_seconds(const float* numbers, int64_t count);
/// Peak of the resident memory, which then starts again from what is resident now.
int64_t take_peak_bytes();

}  // namespace capstan::bench
