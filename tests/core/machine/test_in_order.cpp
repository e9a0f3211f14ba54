#include "core/machine/in_order.hpp"
#include "tests/support/texts.hpp"
#include "tests/support/threads.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

using namespace capstan;

namespace {

constexpr size_t large = size_t{1} << 17;

}  // namespace

TEST_CASE("results are taken in the order of the items with any number of threads") {
  for (const int count : {1, 2, 3, 7}) {
    const Threads threads_used(count);
    for (const size_t bytes : {size_t{0}, size_t{100}, large, 100 * large}) {
      std::vector<int> taken;
      InOrder<int, int> squares([](int item) { return item * item; },
                                [&](int item, auto& outcome) {
                                  REQUIRE(outcome.get() == item * item);
                                  taken.push_back(item);
                                });
      for (int item = 0; item < 500; ++item) squares.add(item, bytes);
      squares.finish();
      squares.finish();
      REQUIRE(taken.size() == 500);
      for (size_t i = 0; i < taken.size(); ++i) CHECK(taken[i] == static_cast<int>(i));
    }
  }
}

TEST_CASE("the error of the earliest item is the first one that is met") {
  for (const int count : {1, 2, 3, 7}) {
    const Threads threads_used(count);
    size_t before = 0;
    InOrder<int, int> work(
        [](int item) {
          if (item % 10 == 9) throw std::runtime_error(std::to_string(item));
          return item;
        },
        [&](int, auto& outcome) {
          outcome.get();
          ++before;
        });
    const std::string met = message_of<std::runtime_error>([&] {
      for (int item = 0; item < 100; ++item) work.add(item, large);
      work.finish();
    });
    CHECK(met == "9");
    CHECK(before == 9);
  }
}

TEST_CASE("what waits to be taken is bounded") {
  for (const int count : {1, 4}) {
    const Threads threads_used(count);
    size_t waiting = 0, most = 0;
    InOrder<int, int> work([](int item) { return item; }, [&](int, auto&) { --waiting; });
    for (int item = 0; item < 1000; ++item) {
      most = std::max(most, ++waiting);
      work.add(item, 4 * large);
    }
    work.finish();
    CHECK(waiting == 0);
    CHECK(most == 8 * static_cast<size_t>(count));
  }
}

TEST_CASE("work in order ends when it is asked to stop") {
  for (const int count : {1, 3}) {
    const Threads threads_used(count);
    std::atomic<int> asked{0};
    const StopPoll poll = [&asked] { return ++asked > 2; };
    const StopScope scope(&poll);
    InOrder<int, int> work([](int item) { return item; }, [](int, auto&) { FAIL("stopped work was taken"); });
    CHECK_THROWS_AS(
        [&] {
          for (int item = 0; item < 1000; ++item) work.add(item, 4 * large);
        }(),
        Stopped);
  }
}
