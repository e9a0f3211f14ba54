// Products in bf16 by oneDNN, for tests that need them whatever the CPU takes by itself.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "core/array/array.hpp"
#include "tests/support/products.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

/// While it lives, oneDNN computes products of bf16 matrices, if it can.
class Bf16Products {
 public:
  Bf16Products() {
    if (possible_) set_bf16_backend(Bf16Backend::onednn);
    if (!possible_) MESSAGE("skipped: oneDNN multiplies no bf16 matrices here");
  }
  bool possible() const { return possible_; }

 private:
  KeptProducts kept_;
  bool possible_ = onednn_multiplies_bf16();
};

inline bool same_bits(const std::vector<Array>& a, const std::vector<Array>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!std::equal(a[i].data(), a[i].data() + a[i].size(), b[i].data())) return false;
  return true;
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
