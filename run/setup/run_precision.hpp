// The number format of a run's products: what train.precision leaves open, and what it costs. train_run() chooses by it
// once, before the first step; the choice is written to config.yaml, because results depend on it. `capstan inspect`
// prints machine_report(). tests/run/test_run_precision.cpp and tests/cli/training/test_precision.cpp hold the choice.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "data/batches/data_source.hpp"
#include "run/setup/run_config.hpp"
#include "train/ranks/communicator.hpp"

namespace capstan {

// How fast this machine multiplies in the two formats of train.precision.

/// Operations per second of the three products of affine maps, with the rounding that bf16 needs.
struct ProductRates {
  double float32 = 0, bf16 = 0;  // bf16 is 0 where it was not measured
};

/// y = x W^T for x: (rows, in) and W: (out, in), forward and both gradients.
struct AffineMap {
  int64_t rows = 0, in = 0, out = 0;
  double operations() const {
    return 6 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
  }
};

/// Measures both formats in turn, each several times, and takes the medians. `copies`: so many threads compute the map
/// at the same time, each its own; with 1 all threads compute one. Takes a few tenths of a second: of a large map, a
/// part is measured. bf16 is measured if the CPU has instructions for it.
ProductRates measure_rates(const AffineMap& map, int copies);

struct PrecisionChoice {
  Precision precision = Precision::float32;
  std::string line;  // for the log
};
/// bf16 where products are at least 1.25 times as fast in it: most of a step's time passes in them.
PrecisionChoice choose_precision(const ProductRates& rates);

/// Seconds of a training step.
struct StepTimes {
  double float32 = 0, bf16 = 0;
};
/// bf16 where a step takes at most nine tenths of the time in it.
PrecisionChoice choose_precision(const StepTimes& seconds);
/// Times steps of a run; nothing where that is not possible.
using StepTimer = std::function<std::optional<StepTimes>(const RunConfig&)>;
/// The choice for a run whose sizes are known: by the times of steps, if products are so much faster in bf16 that it
/// could be worthwhile. Their rates are measured with the largest affine map. They alone decide where `timer` has no
/// times, or where CAPSTAN_PRODUCT_RATES ("FLOAT32,BF16" in GFLOP/s) gives them. float32, unmeasured, where bf16
/// has an obstacle. Throws ConfigError for a CAPSTAN_PRODUCT_RATES that cannot be read.
PrecisionChoice choose_precision(const RunConfig& config, const DataSource& data, const StepTimer& timer);

/// A warning for a run in bf16 whose products are slower in it; "" for others, and where bf16 is emulated.
std::string slow_precision_warning(const RunConfig& config, const DataSource& data);

/// Collective: the precision that rank 0 has chosen. Throws Error naming a rank that cannot train in it.
Precision agreed_precision(Communicator& ranks, Precision chosen);

// What a run says of the machine that it runs on.

/// This process, its threads, instruction set and BLAS.
std::string machine_line();
/// That the CPU supports faster kernels than those that BLAS uses; empty where it does not.
std::string blas_warning();

/// machine_line(), blas_warning(), whether products in bf16 have instructions, and measured rates of memory and of
/// affine maps by shape.
std::string machine_report();

}  // namespace capstan
