// How fast a run is, and the time that is left.
#include "core/strings/quantities.hpp"
#include "train/records/pace.hpp"

#include <doctest/doctest.h>

#include "train/records/reporter.hpp"

using namespace capstan;

TEST_CASE("the time left and the share done follow the limit that comes first") {
  Pace pace({100, 0, 0, 60, 0, 0});
  CHECK(pace.time_left(0, 20) == 40);
  pace.step_took(1, 1);
  CHECK(pace.time_left(40, 20) == 40);
  CHECK(pace.time_left(90, 20) == 10);
  CHECK(pace.share_done(90, 20) == 0.9);
  CHECK(pace.share_done(10, 30) == 0.5);
  CHECK(pace.share_done(100, 90) == 1);
  CHECK(Pace({}).share_done(3, 9) == 0);
}

TEST_CASE("a pause of the process is forgotten after 400 steps") {
  Pace pace({1000, 0, 0, 0, 0, 0});
  pace.step_took(1, 1);
  pace.step_took(3600, 1);  // stopped by Ctrl-Z
  for (int i = 0; i < 400; ++i) pace.step_took(1, 1);
  CHECK(pace.time_left(500, 0) < 500 * 8);
  for (int i = 0; i < 1000; ++i) pace.step_took(1, 1);
  CHECK(pace.time_left(500, 0) < 505);
}

TEST_CASE("the time left soon forgets that a run began slowly") {
  Pace pace({1000, 0, 0, 0, 0, 0});
  for (int i = 0; i < 21; ++i) pace.step_took(4, 1);
  for (int i = 0; i < 60; ++i) pace.step_took(1, 1);
  CHECK(pace.time_left(500, 0) < 500 * 1.5);  // the mean of all is 1.75
}

TEST_CASE("the time left counts evaluations and checkpoints") {
  Pace pace({100, 10, 50, 0, 2, 5});
  CHECK(pace.time_left(0, 0) < 0);
  pace.step_took(9, 30);
  CHECK(pace.time_left(40, 0) == 60 * 9 + 6 * 2 * 9 + 2 * 5);  // until there was a second one
  pace.step_took(2, 30);
  pace.step_took(4, 30);
  CHECK(pace.tokens_per_second() == 6);
  CHECK(pace.time_left(40, 0) == 60 * 3 + 6 * 2 * 3 + 2 * 5);  // as they are expected to be
  pace.evaluation_took(7);
  pace.save_took(11);
  CHECK(pace.time_left(40, 0) == 60 * 3 + 6 * 7 + 2 * 11);
  Pace at_the_end({100, 0, 30, 0, 2, 5});
  at_the_end.step_took(1, 1);
  CHECK(at_the_end.time_left(95, 0) == 5 + 2 + 5);  // the last ones are in no interval
  CHECK(at_the_end.time_left(89, 0) == 11 + 2 + 2 * 5);
  CHECK(Pace({}).time_left(3, 0) < 0);
  CHECK(pace.share_done(25, 0) == 0.25);
  CHECK(short_time(130) == "2m10s");
  CHECK(short_time(11041) == "3h04m");
  CHECK(short_count(12345) == "12.3k");
}
