// train.precision: auto, with rates that are given.
#include "run/setup/run_precision.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "core/products/gemm_backend.hpp"
#include "run/training/plan.hpp"
#include "run/yaml/config.hpp"

namespace capstan {
namespace {

TEST_CASE("precision: bf16 is chosen where a step is predicted to be 1.2 times as fast") {
  const double share = 0.8;
  CHECK(predicted_speed({100, 200}, share) == doctest::Approx(1 / (0.2 + 0.4)));
  CHECK(predicted_speed({100, 100}, share) == doctest::Approx(1));
  CHECK(predicted_speed({100, 0}, share) == 0);
  struct {
    double bf16, share;
    Precision chosen;
  } const rows[] = {{200, 0.8, Precision::bf16},    {100, 0.8, Precision::float32}, {50, 0.8, Precision::float32},
                    {127, 0.8, Precision::bf16},    {126, 0.8, Precision::float32},  // 1 / 1.2 = 0.2 + 0.8 / 1.263
                    {200, 0.3, Precision::float32}, {200, 0.34, Precision::bf16},   {200, 0, Precision::float32},
                    {0, 0.8, Precision::float32}};
  for (const auto& row : rows) {
    INFO(row.bf16, " GFLOP/s, share ", row.share);
    const PrecisionChoice choice = choose_precision({100e9, row.bf16 * 1e9}, row.share);
    CHECK(choice.precision == row.chosen);
    CHECK(choice.line.find("auto is " + enum_name(row.chosen)) != std::string::npos);
  }
  CHECK(choose_precision({110e9, 55e9}, 1).line ==
        "train.precision: auto is float32: products run at 110 GFLOP/s in float32 and at 55 in bf16, in which a step "
        "is predicted to be 0.50 times as fast");
}

TEST_CASE("precision: the largest products are measured, cut to what takes a short time") {
  const std::vector<AffineMap> maps =
      narrowed({{1024, 64, 64, 8}, {1024, 192, 768, 8}, {8192, 4096, 50000, 1}, {1024, 256, 256, 2}});
  REQUIRE(maps.size() >= 1);
  CHECK(maps[0].in <= 1024);
  CHECK(maps[0].out <= 1024);
  CHECK(maps[0].rows >= 128);
  const std::vector<AffineMap> small = narrowed({{1024, 64, 64, 1}, {1024, 192, 96, 8}});
  REQUIRE(small.size() == 2);
  CHECK(small[0].in == 192);  // as they are, that with most operations first
  CHECK(small[0].rows == 1024);
  CHECK(small[1].count == 1);
  CHECK(narrowed(std::vector<AffineMap>{}).empty());
  for (const int copies : {1, 2}) {
    const ProductRates rates = measure_rates({{64, 32, 48, 2}, {64, 32, 32, 1}}, copies);
    CHECK(rates.float32 > 1e6);
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

}  // namespace
}  // namespace capstan
