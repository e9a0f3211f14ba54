// Settings and memory of OpenBLAS and OpenMP, for blas_info.hpp: some of them must be made before main(), so the
// program may restart itself with them. tests/cli/training/test_boundaries.cpp.
#include "core/products/blas_info.hpp"

#include <cblas.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>

#include "core/base/error.hpp"
#include "core/base/no_copy.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/machine/cpu_limit.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/gemm_backend.hpp"

// Functions that no header of OpenBLAS declares. They are weak because other builds may hide them.
extern "C" {
__attribute__((weak)) void* blas_memory_alloc(int purpose);
__attribute__((weak)) void blas_memory_free(void* memory);
__attribute__((weak)) void gotoblas_dynamic_init();
__attribute__((weak)) void gotoblas_dynamic_quit();
}

namespace capstan {
namespace {

constexpr const char* blas_purpose = "OpenBLAS's work memory: raise ulimit -v, or lower the key threads";

/// Work memory of OpenBLAS, returned to it for its later products.
class BlasMemory : NoCopy {
 public:
  BlasMemory() {
    check_available(blas_thread_bytes, blas_purpose);
    memory_ = blas_memory_alloc(0);
  }
  ~BlasMemory() { blas_memory_free(memory_); }

 private:
  void* memory_;
};

/// Raises the limit of stacks where it is too low; true: new processes have larger ones than this. Throws Error where
/// that is not allowed.
bool widen_stacks() {
  constexpr rlim_t least = 512 << 10, usual = 8 << 20;
  rlimit stack{};
  if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= least) return false;
  if (stack.rlim_max < least)
    throw Error(fmt::format("stacks are limited to {} kB, but at least {} are needed: raise ulimit -s",
                            stack.rlim_max >> 10, least >> 10));
  stack.rlim_cur = std::min(stack.rlim_max, usual);
  return setrlimit(RLIMIT_STACK, &stack) == 0;
}

std::atomic<int>& thread_setting() {
  static std::atomic<int> setting = cpu_limit();
  return setting;
}

thread_local int fixed_threads = 0;  // 0: the setting counts

/// How often a waiting thread of OpenMP looks before it sleeps: about 20 microseconds, longer than the gaps between the
/// parallel regions of a step.
char bounded_wait[] = "GOMP_SPINCOUNT=5000";

}  // namespace

void set_threads(int threads) {
  check(threads >= 0, "threads: {} is negative", threads);
  thread_setting() = threads == 0 ? cpu_limit() : threads;
}

int threads() { return fixed_threads != 0 ? fixed_threads : thread_setting().load(); }

FixedThreads::FixedThreads() : before_(fixed_threads) { fixed_threads = threads(); }
FixedThreads::~FixedThreads() { fixed_threads = before_; }

void reserve_product_memory() {
  make_onednn_kernels();
  reserve_blas_memory();
}

void reserve_blas_memory() {
  if (blas_memory_alloc == nullptr || blas_memory_free == nullptr) return;
  std::deque<BlasMemory> together;
  for (int products = std::min(threads(), max_blas_products()); products > 0; --products) together.emplace_back();
}

BlasInfo blas_info() {
  static const char* const threading[] = {"serial", "pthread", "openmp"};
  std::string version = openblas_get_config();
  version = version.substr(0, version.find(' ', version.find(' ') + 1));
  const std::string onednn = "oneDNN " + onednn_version();
  std::string float_products = "OpenBLAS";
  if (gemm_backend() == GemmBackend::onednn) float_products = onednn;
  if (gemm_backend() == GemmBackend::portable) float_products = "Capstan, portable";
  return {openblas_get_corename(), threading[openblas_get_parallel()], version, float_products,
          bf16_backend() == Bf16Backend::onednn ? onednn : float_products + ", in floats"};
}

#if defined(__x86_64__)
std::string better_blas_core() {
  const auto is_one_of = [core = std::string(openblas_get_corename())](std::initializer_list<const char*> cores) {
    return std::find(cores.begin(), cores.end(), core) != cores.end();
  };
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx512) return is_one_of({"SkylakeX", "Cooperlake", "SapphireRapids"}) ? "" : "SkylakeX";
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return !avx2 || is_one_of({"Haswell", "Zen", "SkylakeX", "Cooperlake", "SapphireRapids"}) ? "" : "Haswell";
}
#else
std::string better_blas_core() { return ""; }
#endif

void use_better_blas_core() {
  constexpr const char* name = "OPENBLAS_CORETYPE";
  const std::string better = better_blas_core();
  if (better.empty() || std::getenv(name) != nullptr || gotoblas_dynamic_init == nullptr ||
      gotoblas_dynamic_quit == nullptr)
    return;
  if (setenv(name, better.c_str(), 0) != 0) return;
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  unsetenv(name);
}

void restart_with_best_settings(char** argv) {
  constexpr const char* marker = "CAPSTAN_RESTARTED";
  use_better_blas_core();
  if (std::getenv(marker) != nullptr) {
    unsetenv(marker);  // not for the programs that this one starts
    return;
  }
  bool changed = widen_stacks();
  for (const char* const name : {"OMP_STACKSIZE", "GOMP_STACKSIZE"})  // the limit of all stacks is the right size
    changed = (std::getenv(name) != nullptr && unsetenv(name) == 0) || changed;
  const auto set = [&changed](const char* name, const std::string& value) {
    if (std::getenv(name) != nullptr || value.empty()) return;
    changed = setenv(name, value.c_str(), 0) == 0 || changed;
  };
  set("OPENBLAS_CORETYPE", better_blas_core());
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) set("GOMP_SPINCOUNT", bounded_wait + std::strlen("GOMP_SPINCOUNT="));
  if (!changed || setenv(marker, "1", 1) != 0) return;
  execv("/proc/self/exe", argv);
}

void bound_openmp_waits(char** environment) {
  char** place = nullptr;
  for (char** variable = environment; *variable != nullptr; ++variable) {
    for (const char* const set : {"GOMP_SPINCOUNT=", "OMP_WAIT_POLICY="})
      if (std::strncmp(*variable, set, std::strlen(set)) == 0) return;
    if (std::strncmp(*variable, "_=", 2) == 0) place = variable;
  }
  if (place != nullptr) *place = bounded_wait;
}

}  // namespace capstan
