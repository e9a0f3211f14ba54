// McNemar's exact test beside values of scipy 1.17.1 (binomtest(min, n, 0.5).pvalue), and the bootstrap beside its
// normal limit.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/threads.hpp"
#include "train/evaluation/paired_test.hpp"

namespace capstan {
namespace {

/// Texts on which only one model is right, and scipy's p-value.
struct McNemarCase {
  int64_t first, second;
  double p_value;
};
const McNemarCase mcnemar_cases[] = {
    {0, 0, 1.0},
    {1, 0, 1.0},
    {5, 5, 1.0},
    {34, 22, 0.1408954235984807},
    {3, 17, 0.0025768280029296875},
    {0, 60, 1.734723475976807e-18},
    {412, 388, 0.41613552853961644},
    {500, 511, 0.7531570087732135},
    {5000, 5200, 0.04878796312682234},
    {120000, 119000, 0.041006514753214623},
};

/// Of two models that are right on 60 and on 70 of 100 texts: differences of one text, from -1 to 1.
std::vector<double> differences() {
  std::vector<double> values(100, 0.0);
  for (size_t i = 0; i < 20; ++i) values[i] = 1;
  for (size_t i = 20; i < 30; ++i) values[i] = -1;
  return values;
}

PairedDifference bootstrap_on(int number_of_threads) {
  const Threads threads_used(number_of_threads);
  const std::vector<double> values = differences();
  const PairedDifference result = paired_bootstrap(100, [&](const std::vector<int64_t>& drawn) {
    double sum = 0;
    for (const int64_t i : drawn) sum += values[static_cast<size_t>(i)];
    return sum / static_cast<double>(drawn.size());
  });
  return result;
}

}  // namespace

TEST_CASE("McNemar's exact test has scipy's p-values") {
  for (const McNemarCase& known : mcnemar_cases) {
    CAPTURE(known.first);
    CAPTURE(known.second);
    CHECK(std::abs(mcnemar_p_value(known.first, known.second) - known.p_value) < 1e-12);
    CHECK(mcnemar_p_value(known.second, known.first) == mcnemar_p_value(known.first, known.second));
  }
}

TEST_CASE("paired bootstrap: the normal interval, and the same on any number of threads") {
  const PairedDifference one = bootstrap_on(1), two = bootstrap_on(2);
  CHECK(one.difference == doctest::Approx(0.1));
  const double deviation = std::sqrt((0.3 - 0.01) / 100);
  CHECK(one.low == doctest::Approx(0.1 - 1.96 * deviation).epsilon(0.3));
  CHECK(one.high == doctest::Approx(0.1 + 1.96 * deviation).epsilon(0.05));
  CHECK(one.p_value == doctest::Approx(std::erfc(0.1 / deviation / std::sqrt(2.0))).epsilon(0.5));
  CHECK(one.low == two.low);
  CHECK(one.high == two.high);
  CHECK(one.p_value == two.p_value);
}

}  // namespace capstan
