// Which kernels run. A portable build (CAPSTAN_NATIVE=OFF) holds the folders kernels/ once for each of x86-64-v2, -v3
// and -v4; before main the best level that the CPU has is chosen, or the one that the environment names in CAPSTAN_CPU.
// A native build has one set, and one for ARM64 as well. BLAS and oneDNN choose for themselves. All levels compute the
// same up to rounding (tests/models/portable_levels.cpp).
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace capstan {

/// The level in use, such as "x86-64-v3"; in a native build the instruction set that it was compiled for, such as
/// "avx512bw".
std::string kernel_level();

/// Can this CPU run programs for "x86-64-v2", "x86-64-v3", "x86-64-v4"? False for any other name.
bool cpu_has_level(const std::string& level);

/// Uses the kernels of `level` from now on; only while nothing is being computed. Throws ConfigError for a level that
/// this build or this CPU does not have.
void set_kernel_level(const std::string& level);

/// Throws ConfigError when CAPSTAN_CPU names what set_kernel_level would refuse; the best level runs in that case.
void check_kernel_choice();

/// The kernels of one library at all levels, called through `slots`, which at first are the lowest level's. Only
/// sources that cmake/dispatch_kernels.sh makes use it.
using KernelAddress = void (*)();
class KernelTable {
 public:
  using Levels = std::array<const KernelAddress*, 3>;  // lowest first
  KernelTable(KernelAddress* slots, size_t count, const Levels& levels);
  void use(size_t level) const;

 private:
  KernelAddress* slots_;
  size_t count_;
  Levels levels_;
};

}  // namespace capstan
