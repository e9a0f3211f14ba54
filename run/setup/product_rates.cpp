#include "run/setup/product_rates.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include "core/fused/linear_products.hpp"
#include "core/machine/parallel.hpp"
#include "core/machine/pool.hpp"
#include "core/products/gemm_backend.hpp"
#include "core/products/kernels/bf16.hpp"
#include "train/records/pace.hpp"

namespace capstan {
namespace {

constexpr int least_rounds = 3, most_rounds = 7;
constexpr double enough_seconds = 0.3;
constexpr int64_t most_work = int64_t{1} << 27;  // multiplications of a product
constexpr int64_t most_width = 1024, least_rows = 128;

/// Of fewer rows and columns where it is large: the rate of a product no longer depends on its size there.
AffineMap narrowed(AffineMap map) {
  map.in = std::min(map.in, most_width);
  map.out = std::min(map.out, most_width);
  map.rows = std::min(map.rows, std::max(least_rows, most_work / (map.in * map.out)));
  return map;
}

enum Format { in_float32, in_bf16 };

/// The matrices of a map, which are not zero: nothing is faster with them than in training.
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

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

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
  for (int round = -1; round < most_rounds; ++round) {  // the first one makes code and touches the memory
    if (round >= least_rounds && since.seconds() > enough_seconds) break;
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

}  // namespace capstan
