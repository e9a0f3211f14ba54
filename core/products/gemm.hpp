// Matrix products: one interface to three backends (core/products/gemm_backend.hpp). A product is cut into pieces that
// depend on its shape alone, and a library computes each piece on one thread: this reaches a higher share of the
// machine's rate than the library's own threading, and gives the same bits on any number of threads. Called by
// core/ops, core/fused, nn/systems and Muon. tests/core/products/test_gemm.cpp holds it to three loops.
#pragma once

#include <cstdint>

#include "core/array/array.hpp"
#include "core/products/gemm_backend.hpp"

namespace capstan::CAPSTAN_PRECISION {

using MatrixView = MatrixOf<real>;
using Bf16View = MatrixOf<Bf16>;

/// C (m, n) = alpha * A (m, k) * B (k, n) + beta * C; with beta = 0 the old content of C is never read. Cut along
/// the longer side of C, unless it runs on the calling thread alone (in_parallel).
void gemm(int64_t m, int64_t n, int64_t k, const MatrixView& a, const MatrixView& b, real* c, int64_t c_stride,
          real alpha = 1, real beta = 0);

/// C = A B + beta * C of bf16 matrices, multiplied and added in floats;
/// beta is 0 or 1. Throws std::invalid_argument otherwise.
void gemm(int64_t m, int64_t n, int64_t k, const Bf16View& a, const Bf16View& b, float* c, int64_t c_stride,
          float beta = 0);

/// `batch` products whose operands are a_step, b_step and c_step elements apart (0 shares an operand).
void gemm_batched(int64_t batch, int64_t m, int64_t n, int64_t k, const MatrixView& a, int64_t a_step,
                  const MatrixView& b, int64_t b_step, real* c, int64_t c_stride, int64_t c_step, real alpha = 1,
                  real beta = 0);

}  // namespace capstan::CAPSTAN_PRECISION
