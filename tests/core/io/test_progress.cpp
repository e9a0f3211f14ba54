// What long work says of itself where there is no terminal, and the bar of one.
#include "core/io/progress.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "core/io/console.hpp"

using namespace capstan;

TEST_CASE("a bar is never longer than its frame, and never says more than 100 %") {
  CHECK(draw_bar(-1) == "[          ]   0% ");
  CHECK(draw_bar(0.52) == "[=====     ]  52% ");
  CHECK(draw_bar(2) == "[==========] 100% ");
}

TEST_CASE("lines about long work have shares, amounts and the time left as far as they are known") {
  disable_console(true);
  std::vector<std::string> lines;
  const auto begins = [&](const std::string& begin) { return lines.back().rfind(begin, 0) == 0; };
  const LogLine log = [&](const std::string& line) { lines.push_back(line); };
  Progress(log, "reading", 4e6, in_megabytes, 0).add(1e6);
  CHECK_MESSAGE(begins("reading: 25 %, 1 of 4 MB, "), lines.back());
  CHECK_MESSAGE(lines.back().find("MB/s, 0s left") != std::string::npos, lines.back());
  Progress(log, "reading", 0, in_texts, 0).add(7);  // nobody knows how many there are
  CHECK_MESSAGE(begins("reading, 7 texts, "), lines.back());
  CHECK(lines.back().find("left") == std::string::npos);
  Progress(log, "reading", 1e7, in_texts, 0).add(1);  // too little to guess by
  CHECK(lines.back().find("left") == std::string::npos);
  Progress(log, "solving", 2, in_shares, 0).begin("saving");  // nothing is done yet
  CHECK(lines.back() == "saving: 0 %");
  Progress(log, "solving", 2, in_shares, 0).add(5);  // more than was expected
  CHECK(lines.back() == "solving: 100 %, 0s left");
  Progress with_more_to_come(log, "evaluating", 2, in_shares, 0);
  with_more_to_come.expect_more_seconds(90);
  with_more_to_come.add(1);
  CHECK(lines.back() == "evaluating: 50 %, 1m30s left");
  Progress before_passes(log, "reading", 4, in_texts, 0);
  before_passes.expect_more_work(1e9);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  before_passes.add(1);  // a thousand million times this, which took a millisecond or more, follow
  CHECK_MESSAGE(lines.back().find("d", lines.back().find("/s, ")) != std::string::npos, lines.back());
  Progress looked_for(log, "solving", 8, in_texts, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // what an earlier process did is looked for
  const Stopwatch own;
  looked_for.skip(6);
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  looked_for.add(1);
  const double seconds = own.seconds();
  const std::string& rate = lines.back();  // "solving: 88 %, 7 of 8 texts, 1.4 texts/s, 1s left"
  CHECK_MESSAGE(std::stod(rate.substr(rate.find("of 8 texts, ") + 12)) * seconds > 0.99, rate);
  Progress resumed(log, "solving", 8, in_texts, 0);
  resumed.skip(6);  // no time was spent on it here
  CHECK(lines.back() == "solving: 75 %, 6 of 8 texts, 0 texts/s");
  Progress later(log, "solving", 8, in_texts, 1);
  later.skip(6);
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  later.add(1);
  CHECK_MESSAGE(begins("solving: 88 %, 7 of 8 texts, 0.4"), lines.back());
  CHECK_MESSAGE(lines.back().find("2s left") != std::string::npos, lines.back());
  const size_t before = lines.size();
  Progress(log, "short", 2, in_shares).add(1);  // a second has not passed
  Progress({}, "silent", 2, in_shares, 0).add(1);
  CHECK(lines.size() == before);
  disable_console(false);
}

TEST_CASE("a line of which there are many is due some times over a run, or ever more seldom where no end is known") {
  RateLimiter few(3), rare(3);
  int said = 0;
  for (int step = 1; step <= 100; ++step) said += few.due(step / 100.0) ? 1 : 0;
  CHECK(said == 4);
  CHECK_FALSE(few.due(1));
  for (const bool due : {true, true, false, true, false, false, false, true}) CHECK(rare.due(0) == due);
}
