// The number format of a run's products: what train.precision leaves open, and what it costs.
#pragma once

#include <string>

#include "data/batches/data_source.hpp"
#include "run/setup/product_rates.hpp"
#include "run/setup/run_config.hpp"
#include "train/ranks/communicator.hpp"

namespace capstan {

struct PrecisionChoice {
  Precision precision = Precision::float32;
  std::string line;  // for the log
};
/// bf16 where products are at least 1.25 times as fast in it: most of a step's time passes in them.
PrecisionChoice choose_precision(const ProductRates& rates);
/// The same for a run whose sizes are known. The rates are measured with its largest affine map, or are those of
/// CAPSTAN_PRODUCT_RATES ("FLOAT32,BF16" in GFLOP/s). float32, unmeasured, where bf16 has an obstacle.
/// Throws ConfigError for a CAPSTAN_PRODUCT_RATES that cannot be read.
PrecisionChoice choose_precision(const RunConfig& config, const DataSource& data);

/// A warning for a run in bf16 whose products are slower in it; "" for others, and where bf16 is emulated.
std::string slow_precision_warning(const RunConfig& config, const DataSource& data);

/// Collective: the precision that rank 0 has chosen. Throws Error naming a rank that cannot train in it.
Precision agreed_precision(Communicator& ranks, Precision chosen);

}  // namespace capstan
