// Chooses by shape and strides the library that computes a product, and bounds how many threads are inside OpenBLAS at
// a time. tests/core/products/float_gemm_backends.cpp and float_bf16.cpp compare the libraries.
#include "core/products/gemm_backend.hpp"

#include <cblas.h>
#include <omp.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/array/array.hpp"
#include "core/base/bf16.hpp"
#include "core/base/error.hpp"
#include "core/base/no_copy.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/machine/kernel_levels.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/kernels/in_order.hpp"
#include "core/products/onednn_bf16.hpp"

#ifdef CAPSTAN_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

namespace capstan {
namespace {

#ifdef CAPSTAN_ONEDNN
constexpr bool has_onednn = true;
#else
constexpr bool has_onednn = false;
#endif

std::atomic<GemmBackend>& backend_setting() {
  static std::atomic<GemmBackend> setting = fastest_gemm_backend();
  return setting;
}

Bf16Backend& bf16_setting() {
  static Bf16Backend setting = bf16_obstacle().empty() ? Bf16Backend::onednn : Bf16Backend::floats;
  return setting;
}

/// While it lives, this thread may call OpenBLAS. Its constructor waits while max_blas_products() threads are inside.
class BlasTurn : NoCopy {
 public:
  BlasTurn() {
    while (taken_.fetch_add(1) >= max_blas_products()) {
      --taken_;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  ~BlasTurn() { --taken_; }

 private:
  inline static std::atomic<int> taken_ = 0;
};

template <class T, class Function>
void call_blas(const Product<T>& p, Function cblas_gemm) {
  const BlasTurn turn;
  cblas_gemm(CblasRowMajor, p.a.transposed() ? CblasTrans : CblasNoTrans, p.b.transposed() ? CblasTrans : CblasNoTrans,
             static_cast<blasint>(p.m), static_cast<blasint>(p.n), static_cast<blasint>(p.k), p.alpha, p.a.data,
             static_cast<blasint>(p.a.stride), p.b.data, static_cast<blasint>(p.b.stride), p.beta, p.c,
             static_cast<blasint>(p.c_stride));
}

/// The elements of a matrix of `rows` and `columns`, as it is stored, row after row without gaps.
ArrayOf<float> widened(const MatrixOf<Bf16>& matrix, int64_t rows, int64_t columns) {
  if (matrix.transposed()) std::swap(rows, columns);
  ArrayOf<float> result(Shape{rows, columns});
  float* to = result.mutable_data();
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) *to++ = to_float(matrix.data[row * matrix.stride + column]);
  return result;
}

void multiply_as_floats(const Bf16Product& p) {
  const ArrayOf<float> a = widened(p.a, p.m, p.k), b = widened(p.b, p.k, p.n);
  const MatrixOf<float> left{a.data(), a.dim(1), p.a.transpose}, right{b.data(), b.dim(1), p.b.transpose};
  multiply(Product<float>{p.m, p.n, p.k, left, right, p.c, p.c_stride, p.alpha, p.beta});
}

#ifdef CAPSTAN_ONEDNN
constexpr size_t onednn_code_bytes = size_t{16} << 20;  // it takes 3 MB
constexpr const char* onednn_code = "the machine code of oneDNN";

/// Whether OpenBLAS computes p faster than oneDNN, by limits that were measured (bench/tables/records/products.md).
bool openblas_is_faster(const Product<float>& p) {
  const int64_t work = p.m * p.n * p.k;
  // A call of oneDNN costs about 0.4 microseconds.
  if (work < 32 * 1024) return true;
  // OpenBLAS has kernels that multiply small matrices without packing; they are slow where only B is transposed.
  const bool only_b_transposed = p.b.transposed() && !p.a.transposed();
  if (!only_b_transposed && p.n <= 128 && work <= 1'000'000) return true;
  // The forward product of a wide layer, which starts from the bias.
  if (only_b_transposed && p.beta != 0 && p.m >= 512 && p.n >= 1024) return true;
  // oneDNN packs a transposed A slowly when its rows are a multiple of 1 KB apart, and a narrow B does not make up for
  // it: weight gradients of layers with 1024 outputs or more.
  return p.a.transposed() && p.a.stride >= 1024 && p.a.stride % 256 == 0 && p.k > 512 && p.n < 1024;
}

void call_onednn(const Product<float>& p) {
  const dnnl_status_t status = dnnl_sgemm(p.a.transposed() ? 'T' : 'N', p.b.transposed() ? 'T' : 'N', p.m, p.n, p.k,
                                          p.alpha, p.a.data, p.a.stride, p.b.data, p.b.stride, p.beta, p.c, p.c_stride);
  check(status == dnnl_success, "gemm: oneDNN refuses a product ({}, {}) x ({}, {}): status {}", p.m, p.k, p.k, p.n,
        static_cast<int>(status));
}
#endif

}  // namespace

void make_onednn_kernels() {
#ifdef CAPSTAN_ONEDNN
  if (gemm_backend() != GemmBackend::onednn) return;
  check_available(onednn_code_bytes, onednn_code);
  constexpr int64_t size = 64;
  const std::vector<float> a(size * size), b(size * size);
  std::vector<float> c(size * size);
  const OneThreadProducts one_thread;
  for (const Transpose of_a : {Transpose::no, Transpose::yes})
    for (const Transpose of_b : {Transpose::no, Transpose::yes})
      for (const float beta : {0.0F, 1.0F})
        call_onednn({size, size, size, {a.data(), size, of_a}, {b.data(), size, of_b}, c.data(), size, 1, beta});
#endif
}

GemmBackend fastest_gemm_backend() { return has_onednn ? GemmBackend::onednn : GemmBackend::openblas; }

GemmBackend gemm_backend() { return backend_setting(); }

void set_gemm_backend(GemmBackend backend) {
  check(has_onednn || backend != GemmBackend::onednn, "set_gemm_backend: this build has no oneDNN");
  if (backend == GemmBackend::portable) check(portable_obstacle().empty(), "set_gemm_backend: {}", portable_obstacle());
  backend_setting() = backend;
}

std::string portable_obstacle() {
  if (kernels_fuse()) return "";
  return fmt::format("the {} kernels have no fused products: a CPU with AVX2 or ARM64 has them", kernel_level());
}

std::string onednn_version() {
#ifdef CAPSTAN_ONEDNN
  const dnnl_version_t* const version = dnnl_version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
#else
  return "";
#endif
}

std::string bf16_obstacle() {
  if (!has_onednn)
    return "this build has no oneDNN, which bf16 products need: install libdnnl-dev and build again, or use float32";
  if (!onednn_uses_bf16_instructions())
    return "this CPU has no instructions for it (oneDNN looks for AVX512_BF16 or AMX): use float32";
  return "";
}

Bf16Backend bf16_backend() { return gemm_backend() == GemmBackend::portable ? Bf16Backend::floats : bf16_setting(); }

void set_bf16_backend(Bf16Backend backend) {
  check(backend == Bf16Backend::floats || onednn_multiplies_bf16(),
        "set_bf16_backend: this build has no oneDNN, or oneDNN does not support bf16 products on this CPU");
  bf16_setting() = backend;
}

bool onednn_multiplies_bf16() {
  // oneDNN refuses all such products on a CPU that it does not support, so the smallest one tells.
  const Bf16 one[1] = {to_bf16(1)};
  float result[1];
  const OneThreadProducts one_thread;
  return onednn_multiply({1, 1, 1, {one, 1}, {one, 1}, result, 1, 1, 0});
}

int max_blas_products() {
  static const int most = [] {
    constexpr const char* key = "MAX_THREADS=";
    constexpr int unknown = 32;  // a build for one thread has memory for 50
    const char* const setting = std::strstr(openblas_get_config(), key);
    const int threads = setting != nullptr ? std::atoi(setting + std::strlen(key)) : 0;
    return threads > 0 ? std::max(1, 2 * threads - 2) : unknown;
  }();
  return most;
}

void multiply(const Product<float>& product) {
  if (gemm_backend() == GemmBackend::portable) return multiply_in_order(product);
  const OneThreadProducts one_thread;
#ifdef CAPSTAN_ONEDNN
  if (gemm_backend() == GemmBackend::onednn && !openblas_is_faster(product)) {
    static std::once_flag checked;  // a short command makes the machine code of the kinds that it needs alone
    std::call_once(checked, [] { check_available(onednn_code_bytes, onednn_code); });
    return call_onednn(product);
  }
#endif
  call_blas(product, cblas_sgemm);
}

void multiply(const Product<double>& product) {
  const OneThreadProducts one_thread;
  call_blas(product, cblas_dgemm);
}

void multiply(const Bf16Product& product) {
  const OneThreadProducts one_thread;
  if (bf16_backend() == Bf16Backend::onednn && onednn_multiply(product)) return;
  multiply_as_floats(product);
}

}  // namespace capstan
