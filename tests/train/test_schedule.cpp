#include "train/optimizers/schedule.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.hpp"
#include "core/config/settings.hpp"
#include "train/configuration/train_config.hpp"

using namespace capstan;

TEST_CASE("learning rates at known steps") {
  struct Case {
    ScheduleConfig config;
    int64_t step;
    double expected;
  };
  using S = ScheduleShape;
  for (const Case& c : {
           Case{{S::constant, 0, 0, 0.1}, 50, 2},
           Case{{S::constant, 10, 0, 0.1}, 0, 0.2},
           Case{{S::constant, 10, 0, 0.1}, 9, 2},
           Case{{S::linear, 0, 0, 0}, 0, 2},
           Case{{S::linear, 0, 0, 0}, 25, 1.5},
           Case{{S::linear, 0, 0, 0}, 100, 0},
           Case{{S::linear, 20, 0, 0.5}, 60, 1.5},
           Case{{S::linear, 0, 0, 0.5}, 1000, 1},
           Case{{S::cosine, 0, 0, 0}, 50, 1},
           Case{{S::cosine, 0, 0, 0.1}, 100, 0.2},
           Case{{S::cosine, 0, 0.2, 0}, 19, 2},
           Case{{S::cosine, 0, 0.2, 0}, 60, 1},
           Case{{S::inverse_sqrt, 25, 0, 0}, 24, 2},
           Case{{S::inverse_sqrt, 25, 0, 0}, 99, 1},
           Case{{S::inverse_sqrt, 0, 0, 0}, 3, 1},
       }) {
    CAPTURE(enum_name(c.config.shape));
    CAPTURE(c.step);
    CHECK(Schedule(c.config, 2, 100).rate(c.step) == doctest::Approx(c.expected).epsilon(1e-9));
  }
}

TEST_CASE(
    "a correction bends the schedule without a jump: as planned up to its step, at the end with the new last step") {
  for (const ScheduleShape shape :
       {ScheduleShape::constant, ScheduleShape::linear, ScheduleShape::cosine, ScheduleShape::inverse_sqrt})
    for (const Correction& corrected : {Correction{10, 300}, {10, 40}, {2, 60}, {50, 51}, {10, 100}}) {
      CAPTURE(enum_name(shape));
      CAPTURE(corrected.steps);
      const ScheduleConfig config{shape, 8, 0, 0.1};
      const Schedule planned(config, 2, 100), now(config, 2, 100, corrected);
      CHECK(now.warmup() == 8);
      for (int64_t step = 0; step <= std::max<int64_t>(8, corrected.step); ++step)
        CHECK(now.rate(step) == planned.rate(step));
      const bool falls = shape == ScheduleShape::linear || shape == ScheduleShape::cosine;
      const int64_t bend = std::max<int64_t>(8, corrected.step);
      // Each step goes on by the same part of the way that was left.
      const double most = 2 * 0.9 * (M_PI / 2) / static_cast<double>(corrected.steps - bend);
      for (int64_t step = bend; falls && step < corrected.steps; ++step) {
        CHECK(now.rate(step + 1) <= now.rate(step));
        CHECK(now.rate(step) - now.rate(step + 1) <= most);
      }
      if (falls) CHECK(now.rate(corrected.steps) == doctest::Approx(0.2).epsilon(1e-12));
      if (!falls) CHECK(now.rate(corrected.steps) == planned.rate(corrected.steps));
      CHECK(now.event(corrected.steps).find("end reached") != std::string::npos);
    }
  // Half of the way after 60 of 100 steps with a warm-up of 20; the rest over 80.
  const Schedule half({ScheduleShape::linear, 20, 0, 0}, 1, 100, {60, 140});
  CHECK(half.rate(100) == doctest::Approx(0.25).epsilon(1e-12));
}

TEST_CASE("every event of a schedule is told") {
  const Schedule schedule({ScheduleShape::linear, 5, 0, 0}, 1, 20);
  CHECK(schedule.event(0).find("warm-up over 5 steps") != std::string::npos);
  CHECK(schedule.event(4).empty());
  CHECK(schedule.event(5).find("warm-up done") != std::string::npos);
  CHECK(schedule.event(20).find("end reached") != std::string::npos);
}

TEST_CASE("settings that cannot work together are refused") {
  CHECK_THROWS_AS(Schedule({ScheduleShape::cosine}, 1, 0), ConfigError);
  CHECK_THROWS_AS(Schedule({ScheduleShape::constant, 5, 0.5}, 1, 10), ConfigError);
  CHECK_THROWS_AS(Schedule({ScheduleShape::constant, 0, 0.5}, 1, 0), ConfigError);
  TrainConfig config;
  CHECK_THROWS_AS(check_config(config), ConfigError);  // never ends
  config.max_minutes = 1;
  CHECK_THROWS_AS(check_config(config), ConfigError);  // a cosine without an end
  config.schedule.shape = ScheduleShape::constant;
  CHECK_NOTHROW(check_config(config));
  config.patience = 2;
  config.valid_every = 0;
  CHECK_THROWS_AS(check_config(config), ConfigError);
}

TEST_CASE("settings as text name every field, nested ones too") {
  const Settings settings = settings_of(TrainConfig{});
  CHECK(settings.at("optimizer") == "adamw");
  CHECK(settings.at("optimizer.beta1") == "0.9");
  CHECK(settings.at("schedule.shape") == "cosine");
  CHECK(settings.at("check_finite") == "false");
  CHECK(settings.at("progress") == "auto");
}
