// The libraries that gemm calls: OpenBLAS for double; for float also oneDNN, where the build has it (CAPSTAN_ONEDNN);
// for bf16 oneDNN alone. Or none of them: portable products have the same bits on every CPU. train.kernels
// (train/configuration) chooses. tests/core/products/float_gemm_backends.cpp compares the libraries.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/bf16.hpp"
#include "core/products/kernels/product.hpp"

namespace capstan {

/// A product of bf16 matrices, computed in floats: products of two elements are exact, sums are rounded. alpha is 1,
/// and beta 0 or 1.
using Bf16Product = Product<Bf16, float>;

/// What computes products of floats. Shapes that OpenBLAS multiplies faster than oneDNN go to OpenBLAS with both;
/// portable: core/products/kernels/in_order.
enum class GemmBackend { openblas, onednn, portable };

/// oneDNN where the build has it, else OpenBLAS.
GemmBackend fastest_gemm_backend();
/// The backend in use: fastest_gemm_backend() until set_gemm_backend() changes it.
GemmBackend gemm_backend();
/// Sets the backend in use; never while a product runs. Throws std::invalid_argument for onednn in a build without
/// oneDNN, and for portable where the kernels in use have no fused multiply-add.
void set_gemm_backend(GemmBackend backend);
/// Why portable products cannot be had, and what to do; empty where they can.
std::string portable_obstacle();
/// The version of oneDNN, "2.6.3"; empty in a build without oneDNN.
std::string onednn_version();

/// Makes oneDNN generate the machine code for products of floats, after a look whether there is enough memory: at a
/// first product without this, oneDNN would crash where memory is refused. Does nothing in a build without oneDNN.
/// Throws OutOfMemory.
void make_onednn_kernels();

/// How products of bf16 matrices are computed.
enum class Bf16Backend {
  onednn,  // the CPU's bf16 instructions; on a CPU with AVX-512 but without them oneDNN imitates them, very slowly
  floats,  // the elements as floats, by the libraries above: equal but for the order of additions, without any gain
};

/// Why products in bf16 are not faster than in floats here, and what to do; empty where the build has oneDNN and the
/// CPU has instructions for bf16.
std::string bf16_obstacle();
/// oneDNN where there is no obstacle and floats elsewhere, until set_bf16_backend() says otherwise. floats while
/// products are portable.
Bf16Backend bf16_backend();
/// For tests and benchmarks; never while a product runs. Throws std::invalid_argument where the build has no oneDNN or
/// oneDNN refuses such products on this CPU.
void set_bf16_backend(Bf16Backend backend);
/// Can set_bf16_backend(onednn) succeed?
bool onednn_multiplies_bf16();

/// How many products OpenBLAS may compute at a time. Its build sets a number of threads and has work memory for two
/// products per thread, two of which its start takes. With more products at a time it writes outside of its tables.
int max_blas_products();

/// Computes the product, on the calling thread alone. Which library does it depends on shape and strides, never on the
/// elements.
void multiply(const Product<float>& product);
void multiply(const Product<double>& product);
void multiply(const Bf16Product& product);

}  // namespace capstan
