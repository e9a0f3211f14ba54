#include "run/setup/machine_report.hpp"

#include "core/machine/kernel_levels.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "core/products/gemm_backend.hpp"
#include "run/setup/run_precision.hpp"

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
  text += fmt::format("memory: triad {:.1f} GB/s\n", triad_rate(16 << 20) / 1e9);
  text += fmt::format("\naffine maps, forward and both gradients, GFLOP/s\n{:>6}{:>7}{:>7}{:>10}{:>9}{:>12}\n", "rows",
                      "in", "out", "float32", "bf16", "bf16 / f32");
  constexpr AffineMap shapes[] = {{1024, 64, 64},   {1024, 128, 128}, {1024, 128, 512},  {1024, 256, 256},
                                  {1024, 256, 768}, {1024, 512, 512}, {1024, 768, 3072}, {256, 512, 512}};
  for (const AffineMap& shape : shapes) {
    const ProductRates rates = measure_rates(shape, threads());
    text += fmt::format("{:>6}{:>7}{:>7}{:>10.1f}", shape.rows, shape.in, shape.out, rates.float32 / 1e9);
    text += rates.bf16 > 0 ? fmt::format("{:>9.1f}{:>12.2f}\n", rates.bf16 / 1e9, rates.bf16 / rates.float32)
                           : fmt::format("{:>9}{:>12}\n", "-", "-");
  }
  return text;
}

}  // namespace capstan
