#include "train/optimizers/schedule.hpp"

#include <doctest/doctest.h>

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
  CHECK(settings.at("keep_optimizer") == "false");
  CHECK(settings.at("progress") == "auto");
}
