// Threads and processes.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "core/machine/parallel.hpp"

using namespace capstan;

TEST_CASE("a child that is forked after end_threads() computes on threads of its own") {
  set_threads(2);
  const auto right = [] {
    std::atomic<int64_t> sum{0};
    parallel_each(1000, 1, [&](int64_t i) { sum += i; });
    return sum == 499500;
  };
  CHECK(right());
  end_threads();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(60);  // instead of waiting for ever
    _exit(right() ? 0 : 1);
  }
  CHECK(right());
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  set_threads(0);
}
