// Libraries for products, chosen for a part of a test.
#pragma once

#include "core/products/gemm_backend.hpp"
#include "tests/support/threads.hpp"

namespace capstan {

/// Puts back what computes products of floats and of bf16, and the number of threads.
class KeptProducts {
 public:
  KeptProducts() = default;
  ~KeptProducts() {
    set_gemm_backend(floats_);
    set_bf16_backend(bf16_);
  }
  KeptProducts(const KeptProducts&) = delete;
  KeptProducts& operator=(const KeptProducts&) = delete;

 private:
  GemmBackend floats_ = gemm_backend();
  Bf16Backend bf16_ = bf16_backend();
  Threads threads_{threads()};
};

}  // namespace capstan
