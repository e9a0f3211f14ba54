// The lines about the machine, and the rates that `capstan inspect --machine` measures.
#include "run/setup/machine_report.hpp"

#include <fmt/core.h>

#include "core/machine/kernel_levels.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "core/products/gemm_backend.hpp"
#include "core/products/machine_rates.hpp"

namespace capstan {

std::string machine_line() {
  const BlasInfo blas = blas_info();
  return fmt::format("machine: {} threads, SIMD {}, {} ({} kernels, {} threading), float products by {}", threads(),
                     kernel_level(), blas.version, blas.core, blas.threading, blas.float_products);
}

std::string blas_warning() {
  const std::string better = better_blas_core();
  if (better.empty()) return "";
  return fmt::format(
      "OpenBLAS uses its {} kernels although this CPU supports {}, which may be several times faster; if "
      "OPENBLAS_CORETYPE is set, unset it",
      blas_info().core, better);
}

std::string machine_report() {
  std::string text = machine_line() + "\n";
  if (const std::string warning = blas_warning(); !warning.empty()) text += "warning: " + warning + "\n";
  const std::string obstacle = bf16_obstacle();
  text += obstacle.empty() ? fmt::format("bf16: instructions, by {}\n", blas_info().bf16_products)
                           : fmt::format("bf16: {}\n", obstacle);
  text += fmt::format("products: {:.1f} GFLOP/s in float32\n", product_rate() / 1e9);
  text += fmt::format("memory: triad {:.1f} GB/s\n", triad_rate(16 << 20) / 1e9);
  return text;
}

}  // namespace capstan
