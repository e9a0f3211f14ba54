// The libraries that this process computes products with; the settings of OpenBLAS and OpenMP, which apps/main.cpp,
// apps/guard.cpp and python/bindings make before the first product; and the memory that these libraries take, which
// run, serve and apps reserve before long work.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/real.hpp"

namespace capstan {

/// The libraries that gemm calls.
struct BlasInfo {
  std::string core;       // the kernel set OpenBLAS chose, e.g. "SkylakeX"
  std::string threading;  // "openmp", "pthread" or "serial"
  std::string version;
  std::string float_products;  // that computes products of floats: "oneDNN 2.6.3", "OpenBLAS" or "Capstan, portable"
  std::string bf16_products;   // "oneDNN 2.6.3", or "OpenBLAS, in floats" where products of bf16 are emulated
};
BlasInfo blas_info();

/// The kernel set OpenBLAS should use where it chose one below what the CPU can do; empty when its choice is right. Its
/// table has no CPUs newer than its release; those get kernels from 2004 (measured: "Prescott" on an AVX-512 Xeon
/// of 2023, a fifth of the speed of "SkylakeX").
std::string better_blas_core();

/// Makes OpenBLAS use better_blas_core() from now on, unless OPENBLAS_CORETYPE says what to use. Before the first
/// product, never while one runs. Nothing is done with a build of OpenBLAS that cannot change.
void use_better_blas_core();

/// Takes the memory that OpenBLAS keeps for products on all threads(), or max_blas_products(), at once. Later it would
/// take it in the middle of a product and, where it is refused, spin for ever. Throws OutOfMemory.
void reserve_blas_memory();
/// reserve_blas_memory(), and makes oneDNN's machine code, in some 50 milliseconds, which otherwise its first product
/// does. For long work, which would end at that product if memory was short.
void reserve_product_memory();

/// The bytes of work memory that OpenBLAS takes for each of its threads; it takes the first before main, and spins for
/// ever where it is refused.
constexpr unsigned long blas_thread_bytes = 128ul << 20;

/// For the first line of main(), never called by the library: OpenMP reads its settings before main, so the process
/// starts itself again, once, with GOMP_SPINCOUNT set to a bounded wait (threads that spin for ever stall each other on
/// a shared machine) and, if OpenBLAS cannot change, OPENBLAS_CORETYPE to better_blas_core(). Variables that are set
/// already stay as they are, except that all stacks get the size of `ulimit -s`, which is raised to 8 MB where it is
/// below 512 kB. Returns when there is nothing to change or it cannot be done. Throws Error where stacks must be
/// smaller.
void restart_with_best_settings(char** argv);

/// Spares most processes the second start, which doubles the time of a short command. For a function in .preinit_array:
/// OpenMP has not read `environment` yet. No variable can be added to it, but shells leave one there that the program
/// does not use, `_`, in whose place the bounded wait is put.
void bound_openmp_waits(char** environment);

}  // namespace capstan
