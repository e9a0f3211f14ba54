// The libraries behind gemm: OpenBLAS for double; for float also oneDNN, where the build has it (CAPSTAN_ONEDNN).
#pragma once

#include <cstdint>
#include <string>

namespace capstan {

enum class GemmBackend { openblas, onednn };

/// Whom products of floats are given to: oneDNN in a build that has it, until set_gemm_backend() says otherwise. Shapes
/// that OpenBLAS does faster stay with OpenBLAS in either case.
GemmBackend gemm_backend();
/// For tests and benchmarks; never while a product runs. Throws std::invalid_argument where the build has no oneDNN.
void set_gemm_backend(GemmBackend backend);
/// "2.6.3"; empty in a build without oneDNN.
std::string onednn_version();

/// C (m, n) = alpha * op(A) op(B) + beta * C, row-major, k numbers deep; with beta = 0 C is not read. m, n, k > 0.
template <class T>
struct Product {
  int64_t m, n, k;
  const T* a;
  int64_t a_stride;
  bool a_transposed;
  const T* b;
  int64_t b_stride;
  bool b_transposed;
  T* c;
  int64_t c_stride;
  T alpha, beta;
};

/// On the calling thread alone. Which library computes a product depends on its shape and strides, never on its
/// numbers.
void multiply(const Product<float>& product);
void multiply(const Product<double>& product);

}  // namespace capstan
