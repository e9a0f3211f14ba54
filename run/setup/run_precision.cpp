// Rates are medians over rounds in which both formats take turns, because other programs on the machine make some
// rounds slow. CAPSTAN_PRODUCT_RATES takes the place of a measurement in tests.
#include "run/setup/run_precision.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "core/base/error.hpp"
#include "core/base/median.hpp"
#include "core/fused/linear_products.hpp"
#include "core/kernels/kernels.hpp"
#include "core/machine/kernel_levels.hpp"
#include "core/machine/parallel.hpp"
#include "core/machine/pool.hpp"
#include "core/products/blas_info.hpp"
#include "core/products/gemm_backend.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/run_model.hpp"
#include "train/records/pace.hpp"
#include "train/steps/lanes.hpp"

namespace capstan {
namespace {

constexpr int min_rounds = 3, max_rounds = 7;
constexpr double enough_seconds = 0.3;
constexpr int64_t max_work = int64_t{1} << 27;  // multiplications of a product
constexpr int64_t max_width = 1024, min_rows = 128;

/// The map with fewer rows and columns where it is large: the rate of a large product hardly depends on its size.
AffineMap narrowed(AffineMap map) {
  map.in = std::min(map.in, max_width);
  map.out = std::min(map.out, max_width);
  map.rows = std::min(map.rows, std::max(min_rows, max_work / (map.in * map.out)));
  return map;
}

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

}  // namespace

ProductRates measure_rates(const AffineMap& given, int copies) {
  const AffineMap map = narrowed(given);
  const Stopwatch since;
  std::vector<std::unique_ptr<Workload>> workloads;
  for (int i = 0; i < copies; ++i) workloads.push_back(std::make_unique<Workload>(map));
  const auto run = [&](Format format) {
    const Stopwatch watch;
    if (copies == 1)
      workloads.front()->run(format);
    else
      parallel_each(copies, 1, [&](int64_t i) { workloads[static_cast<size_t>(i)]->run(format); });
    return watch.seconds();
  };
  std::vector<Format> formats{in_float32};
  if (bf16_backend() == Bf16Backend::onednn) formats.push_back(in_bf16);
  std::array<std::vector<double>, 2> seconds;
  for (int round = -1; round < max_rounds; ++round) {  // the first one makes code and touches the memory
    if (round >= min_rounds && since.seconds() > enough_seconds) break;
    for (const Format format : formats) {
      const double took = run(format);
      if (round >= 0) seconds[format].push_back(took);
    }
  }
  pool::trim();
  const auto rate = [&](Format format) {
    return seconds[format].empty() ? 0 : copies * map.operations() / median(seconds[format]);
  };
  return {rate(in_float32), rate(in_bf16)};
}

namespace {

constexpr double worthwhile_speed = 1.25, worthwhile_share = 0.9;
constexpr const char* rates_variable = "CAPSTAN_PRODUCT_RATES";

std::optional<ProductRates> given_rates() {
  const char* const text = std::getenv(rates_variable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  ProductRates rates;
  char rest = 0;
  if (std::sscanf(text, "%lf,%lf%c", &rates.float32, &rates.bf16, &rest) != 2 || !std::isfinite(rates.float32) ||
      !std::isfinite(rates.bf16) || rates.float32 <= 0 || rates.bf16 <= 0)
    throw ConfigError(fmt::format("{}: expected two rates in GFLOP/s, such as 110,180, got {}", rates_variable, text));
  return ProductRates{1e9 * rates.float32, 1e9 * rates.bf16};
}

/// Is this a weight by which tokens are multiplied, rather than a table in which they are looked up?
bool is_affine(const std::string& name, const Param& param) {
  return param.var.rank() == 2 && !param.options.by_rows && ends_with(name, ".weight") &&
         !starts_with(name, "embed.") && !starts_with(name, "positions.");
}

/// The rates of the largest affine map of a step, as its threads compute it; nothing for a model without one.
std::optional<ProductRates> rates_of(const RunConfig& config, const DataSource& data) {
  const RunModel model(config, model_vocabulary(config, data.tokenizer()), static_cast<int64_t>(data.classes().size()),
                       ParamMemory::none);
  AffineMap largest;
  const auto consider = [&](const std::string& name, const Param& param) {
    if (is_affine(name, param) && param.var.size() > largest.in * largest.out)
      largest = {0, param.var.dim(1), param.var.dim(0)};
  };
  for (const Param& param : model.params().params()) consider(param.name, param);
  for (const auto& [name, target] : model.params().aliases()) consider(name, model.params().find(target));
  if (largest.in == 0) return std::nullopt;
  if (const auto given = given_rates()) return given;
  const BatchSource& training = data.training();
  const BatchExtent batch = training.batches_per_epoch(0) > 0 ? training.extent(0, 0) : BatchExtent{1, 1};
  const int64_t lanes = lane_count(batch.rows, batch.columns, config.train.lanes);
  largest.rows = std::max<int64_t>(1, batch.rows * batch.columns / lanes);
  if (config.train.micro_batch_tokens > 0) largest.rows = std::min(largest.rows, config.train.micro_batch_tokens);
  return measure_rates(largest, static_cast<int>(std::min<int64_t>(lanes, threads())));
}

std::string bf16_refusal() {
  TrainConfig config;
  config.precision = Precision::bf16;
  return precision_obstacle(config);
}

}  // namespace

PrecisionChoice choose_precision(const ProductRates& rates) {
  const Precision chosen = rates.bf16 >= worthwhile_speed * rates.float32 ? Precision::bf16 : Precision::float32;
  return {chosen,
          fmt::format("train.precision: auto is {}: products run at {:.3g} GFLOP/s in float32 and at {:.3g} in bf16",
                      enum_name(chosen), rates.float32 / 1e9, rates.bf16 / 1e9)};
}

PrecisionChoice choose_precision(const StepTimes& seconds) {
  const Precision chosen = seconds.bf16 <= worthwhile_share * seconds.float32 ? Precision::bf16 : Precision::float32;
  return {chosen, fmt::format("train.precision: auto is {}: a step takes {:.3g} s in float32 and {:.3g} s in bf16",
                              enum_name(chosen), seconds.float32, seconds.bf16)};
}

PrecisionChoice choose_precision(const RunConfig& config, const DataSource& data, const StepTimer& timer) {
  if (config.train.kernels == KernelChoice::portable)
    return {Precision::float32, "train.precision: auto is float32: portable kernels gain nothing by bf16"};
  // Without given rates, a CPU that only emulates bf16 has an obstacle, too: emulation is never faster.
  const std::string obstacle = given_rates() ? bf16_refusal() : bf16_obstacle();
  if (!obstacle.empty())
    return {Precision::float32,
            fmt::format("train.precision: auto is float32: {}", obstacle.substr(0, obstacle.rfind(':')))};
  const auto rates = rates_of(config, data);
  if (!rates) return {Precision::float32, "train.precision: auto is float32: the model has no products to round"};
  const PrecisionChoice by_rates = choose_precision(*rates);
  if (given_rates() || by_rates.precision == Precision::float32) return by_rates;
  const auto seconds = timer(config);
  return seconds ? choose_precision(*seconds) : by_rates;
}

std::string slow_precision_warning(const RunConfig& config, const DataSource& data) {
  if (config.train.precision != Precision::bf16) return "";
  if (!given_rates() && bf16_backend() != Bf16Backend::onednn) return "";
  const auto rates = rates_of(config, data);
  if (!rates || rates->bf16 >= rates->float32) return "";
  return fmt::format(
      "train.precision: bf16 is slower than float32 on this machine: products run at {:.3g} GFLOP/s in bf16 and at "
      "{:.3g} in float32; set float32, or auto, which takes the faster one",
      rates->bf16 / 1e9, rates->float32 / 1e9);
}

Precision agreed_precision(Communicator& ranks, Precision chosen) {
  if (ranks.size() == 1) return chosen;
  const bool bf16 = ranks.broadcast(chosen == Precision::bf16 ? "bf16" : "") == "bf16";
  if (!bf16) return Precision::float32;
  const std::vector<std::string> obstacles = ranks.gather(bf16_refusal());
  for (size_t rank = 0; rank < obstacles.size(); ++rank)
    if (!obstacles[rank].empty())
      throw Error(fmt::format("train.precision: {} has chosen bf16, in which {} cannot train: {}", ranks.name_of(0),
                              ranks.name_of(static_cast<int>(rank)), obstacles[rank]));
  return Precision::bf16;
}

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
