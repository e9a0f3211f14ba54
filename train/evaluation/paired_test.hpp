// Is one model better than another on the same texts, or by chance? For `capstan compare --data`.
// tests/train/test_paired_test.cpp compares with scipy's exact test.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace capstan {

/// The two-sided p-value of McNemar's exact test (McNemar 1947): how probable counts as uneven as these are, or more,
/// if both models are right equally often. `first`, `second`: texts on which only that model is right.
double mcnemar_p_value(int64_t first, int64_t second);

/// A difference that was measured on texts, and how it varies if they are drawn again.
struct PairedDifference {
  double difference = 0, low = 0, high = 0;  // with its 95 % interval
  double p_value = 1;                        // two-sided, that there is none
};

/// The paired bootstrap (Efron and Tibshirani 1993, chapter 13): `difference` of all texts, and of 2,000 samples of as
/// many texts with replacement, or fewer where they are many. `difference` gets the indices of texts, from several
/// threads at once. The same result on any number of threads. May stop (core/base/stop.hpp).
PairedDifference paired_bootstrap(int64_t texts, const std::function<double(const std::vector<int64_t>&)>& difference);

}  // namespace capstan
