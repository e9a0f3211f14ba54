// tests/train/test_paired_test.cpp.
#include "train/evaluation/paired_test.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/random.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {
namespace {

constexpr int64_t usual_samples = 2000, fewest_samples = 200;
constexpr int64_t most_draws = 400'000'000;  // of texts, in all samples: seconds

}  // namespace

double mcnemar_p_value(int64_t first, int64_t second) {
  const int64_t fewer = std::min(first, second), all = first + second;
  // The probability of `fewer` in a binomial distribution with p = 1/2, then each from the one above it.
  double term = 1;
  int64_t halvings = all;
  for (int64_t k = 1; k <= fewer; ++k) {
    term *= static_cast<double>(all - k + 1) / static_cast<double>(k);
    for (; term > 1 && halvings > 0; --halvings) term /= 2;
  }
  term = std::ldexp(term, -static_cast<int>(halvings));
  double sum = 0;
  for (int64_t k = fewer; k >= 0 && term > sum * 1e-18; --k) {
    sum += term;
    term *= static_cast<double>(k) / static_cast<double>(all - k + 1);
  }
  return std::min(1.0, 2 * sum);
}

PairedDifference paired_bootstrap(int64_t texts, const std::function<double(const std::vector<int64_t>&)>& difference) {
  std::vector<int64_t> every(static_cast<size_t>(texts));
  std::iota(every.begin(), every.end(), int64_t{0});
  PairedDifference result;
  result.difference = difference(every);
  const int64_t samples = std::clamp(most_draws / std::max<int64_t>(texts, 1), fewest_samples, usual_samples);
  std::vector<double> drawn(static_cast<size_t>(samples));
  parallel_units(samples, [&](int64_t sample) {
    RandomStream random({static_cast<uint64_t>(sample), hash_path("paired bootstrap")});
    std::vector<int64_t> indices(static_cast<size_t>(texts));
    for (int64_t& index : indices) index = static_cast<int64_t>(random.below(static_cast<uint64_t>(texts)));
    drawn[static_cast<size_t>(sample)] = difference(indices);
  });
  std::sort(drawn.begin(), drawn.end());
  const auto at = [&](double share) { return drawn[static_cast<size_t>(share * static_cast<double>(samples - 1))]; };
  result.low = at(0.025);
  result.high = at(0.975);
  const auto below = std::upper_bound(drawn.begin(), drawn.end(), 0.0) - drawn.begin();
  const auto above = drawn.end() - std::lower_bound(drawn.begin(), drawn.end(), 0.0);
  result.p_value =
      std::min(1.0, 2 * static_cast<double>(std::min(below, above) + 1) / static_cast<double>(samples + 1));
  return result;
}

}  // namespace capstan
