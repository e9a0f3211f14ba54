// train.precision: auto, with rates that are given.
#include "run/setup/run_precision.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "core/products/gemm_backend.hpp"
#include "run/training/plan.hpp"
#include "run/yaml/config.hpp"

namespace capstan {

TEST_CASE("precision: bf16 is chosen where products are 1.25 times as fast") {
  struct {
    double bf16;
    Precision chosen;
  } const rows[] = {{200, Precision::bf16},    {125, Precision::bf16},   {124, Precision::float32},
                    {100, Precision::float32}, {50, Precision::float32}, {0, Precision::float32}};
  for (const auto& row : rows) {
    INFO(row.bf16, " GFLOP/s");
    const PrecisionChoice choice = choose_precision(ProductRates{100e9, row.bf16 * 1e9});
    CHECK(choice.precision == row.chosen);
    CHECK(choice.line.find("auto is " + enum_name(row.chosen)) != std::string::npos);
  }
  CHECK(choose_precision(ProductRates{110e9, 55e9}).line ==
        "train.precision: auto is float32: products run at 110 GFLOP/s in float32 and at 55 in bf16");
}

TEST_CASE("precision: bf16 is chosen where a step takes nine tenths of the time or less") {
  const PrecisionChoice faster = choose_precision(StepTimes{0.5, 0.45}), level = choose_precision(StepTimes{0.5, 0.46});
  CHECK(faster.precision == Precision::bf16);
  CHECK(faster.line == "train.precision: auto is bf16: a step takes 0.5 s in float32 and 0.45 s in bf16");
  CHECK(level.precision == Precision::float32);
  CHECK(level.line == "train.precision: auto is float32: a step takes 0.5 s in float32 and 0.46 s in bf16");
}

TEST_CASE("precision: products are measured in a short time, whatever their size") {
  for (const AffineMap& map : {AffineMap{64, 32, 48}, AffineMap{1, 1, 1}, AffineMap{8192, 4096, 50000}})
    for (const int copies : {1, 2}) {
      const ProductRates rates = measure_rates(map, copies);
      CHECK(rates.float32 > 0);
      CHECK(std::isfinite(rates.float32));
      CHECK((rates.bf16 > 0) == (bf16_backend() == Bf16Backend::onednn));
    }
}

TEST_CASE("precision: a run that was begun keeps what it chose, unless another one is given") {
  const auto config = [](const char* precision) {
    return load_config<RunConfig>(
        {}, {"name=run", "data.train=[text.txt]", "data.sequence_length=128", "model.max_length=128",
             "model.layers=[{mixer: aft-simple}]", "train.steps=5", std::string("train.precision=") + precision});
  };
  for (const char* const chosen : {"float32", "bf16"}) {
    const RunConfig begun = config(chosen);
    CHECK(with_plan_of(begun, config("auto")).train.precision == begun.train.precision);
    CHECK(with_plan_of(begun, config("float32")).train.precision == Precision::float32);
    CHECK(with_plan_of(begun, config("bf16")).train.precision == Precision::bf16);
  }
  CHECK_THROWS_WITH_AS(check_config(config("auto").train),
                       doctest::Contains("train.precision: auto has not been replaced yet: set float32 or bf16"),
                       ConfigError);
}

}  // namespace capstan
