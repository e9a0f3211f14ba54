// Rates are medians over rounds in which both formats take turns, because other programs on the machine make some
// rounds slow.
#include "run/setup/machine_report.hpp"

#include <array>
#include <memory>
#include <vector>

#include <fmt/core.h>

#include "core/base/median.hpp"
#include "core/fused/linear_products.hpp"
#include "core/io/progress.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/machine/kernel_levels.hpp"
#include "core/machine/parallel.hpp"
#include "core/machine/pool.hpp"
#include "core/products/blas_info.hpp"
#include "core/products/gemm_backend.hpp"
#include "core/products/machine_rates.hpp"

namespace capstan {
namespace {

/// y = x W^T for x: (rows, in) and W: (out, in), forward and both gradients.
struct AffineMap {
  int64_t rows = 0, in = 0, out = 0;
  double operations() const {
    return 6 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
  }
};

enum Format { in_float32, in_bf16 };

/// The matrices of a map. Their elements are not zero, so that no product takes less time than in training.
class Workload {
 public:
  explicit Workload(const AffineMap& map)
      : sizes_{map.rows, map.in, map.out},
        x_(Shape{map.rows, map.in}, 0.5F),
        y_(Shape{map.rows, map.out}, 0.25F),
        dx_(Shape{map.rows, map.in}, 0.0F),
        dweight_(Shape{map.out, map.in}, 0.0F),
        weight_(Array(Shape{map.out, map.in}, 0.125F)),
        rounded_(weight_.value()) {
    Bf16Array copy(weight_.shape());
    kernels::round_to_bf16(copy.mutable_data(), weight_.value().data(), copy.size());
    rounded_.set_bf16(std::move(copy));
  }

  void run(Format format) {
    const Factor weight(format == in_bf16 ? rounded_ : weight_), x(x_.data(), x_.size(), weight);
    multiply_rows(x, weight, nullptr, y_.mutable_data(), sizes_);
    const Factor dy(y_.data(), y_.size(), weight);
    input_grad(dy, weight, dx_.mutable_data(), sizes_);
    weight_grad(dy, x, dweight_.mutable_data(), 0, sizes_);
  }

 private:
  LinearSizes sizes_;
  Array x_, y_, dx_, dweight_;
  Var weight_, rounded_;
};

/// Operations per second of the three products of affine maps, with the rounding that bf16 needs.
struct ProductRates {
  double float32 = 0, bf16 = 0;  // bf16 is 0 where the CPU has no instructions for it
};

/// The rates at which all threads compute the map at the same time, each its own.
ProductRates measure_rates(const AffineMap& map) {
  constexpr int min_rounds = 3, max_rounds = 7;
  constexpr double enough_seconds = 0.3;
  const Stopwatch since;
  const int copies = threads();
  std::vector<std::unique_ptr<Workload>> workloads;
  for (int i = 0; i < copies; ++i) workloads.push_back(std::make_unique<Workload>(map));
  std::vector<Format> formats{in_float32};
  if (bf16_backend() == Bf16Backend::onednn) formats.push_back(in_bf16);
  std::array<std::vector<double>, 2> seconds;
  for (int round = -1; round < max_rounds; ++round) {  // the first one makes code and touches the memory
    if (round >= min_rounds && since.seconds() > enough_seconds) break;
    for (const Format format : formats) {
      const Stopwatch watch;
      parallel_each(copies, 1, [&](int64_t i) { workloads[static_cast<size_t>(i)]->run(format); });
      if (round >= 0) seconds[format].push_back(watch.seconds());
    }
  }
  pool::trim();
  const auto rate = [&](Format format) {
    return seconds[format].empty() ? 0 : copies * map.operations() / median(seconds[format]);
  };
  return {rate(in_float32), rate(in_bf16)};
}

}  // namespace

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
    const ProductRates rates = measure_rates(shape);
    text += fmt::format("{:>6}{:>7}{:>7}{:>10.1f}", shape.rows, shape.in, shape.out, rates.float32 / 1e9);
    text += rates.bf16 > 0 ? fmt::format("{:>9.1f}{:>12.2f}\n", rates.bf16 / 1e9, rates.bf16 / rates.float32)
                           : fmt::format("{:>9}{:>12}\n", "-", "-");
  }
  return text;
}

}  // namespace capstan
