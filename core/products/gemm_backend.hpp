// The libraries behind gemm: OpenBLAS for double; for float also oneDNN, where the build has it (CAPSTAN_ONEDNN); for
// bf16 oneDNN alone.
#pragma once

#include <cstdint>
#include <string>

#include "core/array/array.hpp"

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

/// Who computes products of bf16 numbers.
enum class Bf16Backend {
  onednn,  // the CPU's bf16 instructions; on a CPU with AVX-512 but without them oneDNN imitates them, very slowly
  floats,  // the numbers as floats, by the libraries above: equal but for the order of additions, without any gain
};

/// Why products of bf16 numbers gain nothing here, and what to do; empty where the build has oneDNN and the CPU has the
/// instructions.
std::string bf16_obstacle();
/// oneDNN where there is no obstacle and floats elsewhere, until set_bf16_backend() says otherwise.
Bf16Backend bf16_backend();
/// For tests and benchmarks; never while a product runs. Throws std::invalid_argument where the build has no oneDNN or
/// oneDNN refuses such products on this CPU.
void set_bf16_backend(Bf16Backend backend);
/// Can set_bf16_backend(onednn) succeed?
bool onednn_multiplies_bf16();

/// C (m, n) = op(A) op(B), or C + op(A) op(B), in floats: products of two bf16 numbers are exact, sums are rounded.
struct Bf16Product {
  int64_t m, n, k;
  const Bf16* a;
  int64_t a_stride;
  bool a_transposed;
  const Bf16* b;
  int64_t b_stride;
  bool b_transposed;
  float* c;
  int64_t c_stride;
  bool accumulate;
};

/// On the calling thread alone. Which library computes a product depends on its shape and strides, never on its
/// numbers.
void multiply(const Product<float>& product);
void multiply(const Product<double>& product);
void multiply(const Bf16Product& product);

}  // namespace capstan
