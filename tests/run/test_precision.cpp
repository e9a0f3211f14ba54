// train.precision: auto, with times that are given.
#include "run/training/precision.hpp"

#include <doctest/doctest.h>

#include <string>

#include "run/training/begun_run.hpp"
#include "run/yaml/config.hpp"

namespace capstan {

TEST_CASE("precision: bf16 is chosen where a step takes nine tenths of the time or less") {
  const PrecisionChoice faster = choose_precision(PrecisionTimes{0.5, 0.45});
  const PrecisionChoice level = choose_precision(PrecisionTimes{0.5, 0.46});
  CHECK(faster.precision == Precision::bf16);
  CHECK(faster.line == "train.precision: auto is bf16: a step takes 0.5 s in float32 and 0.45 s in bf16");
  CHECK(level.precision == Precision::float32);
  CHECK(level.line == "train.precision: auto is float32: a step takes 0.5 s in float32 and 0.46 s in bf16");
}

TEST_CASE("precision: a run that was begun keeps what it chose, unless another one is given") {
  const auto config = [](const char* precision) {
    return load_config<RunConfig>(
        {}, {"name=run", "data.train=[text.txt]", "data.sequence_length=128", "model.max_length=128",
             "model.layers=[{mixer: aft-simple}]", "train.steps=5", std::string("train.precision=") + precision});
  };
  for (const char* const chosen : {"float32", "bf16"}) {
    const BegunRun begun{config(chosen), true};
    CHECK(with_choices_of(begun, config("auto")).train.precision == begun.config.train.precision);
    CHECK(with_choices_of(begun, config("float32")).train.precision == Precision::float32);
    CHECK(with_choices_of(begun, config("bf16")).train.precision == Precision::bf16);
  }
  CHECK_THROWS_WITH_AS(check_config(config("auto").train),
                       doctest::Contains("train.precision: auto has not been replaced yet: set float32 or bf16"),
                       ConfigError);
}

}  // namespace capstan
