#include "core/base/out_of_memory.hpp"
#include "core/base/sizes.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "core/base/error.hpp"

namespace capstan {

TEST_CASE("sizes: products and sums that overflow are refused with their factors") {
  CHECK(checked_product("table", {3, 5, 7}) == 105);
  CHECK(checked_product("table", {0, int64_t{1} << 58}) == 0);
  CHECK(checked_product("table", {max_elements, 1}) == max_elements);
  CHECK_THROWS_WITH_AS(checked_product("table", {int64_t{1} << 32, int64_t{1} << 32}),
                       "table: 4294967296 x 4294967296 is more than this program can count: lower the sizes", Error);
  CHECK_THROWS_AS(checked_product("table", {max_elements, 2}), Error);
  CHECK_THROWS_AS(checked_product("table", {-1, 2}), Error);
  CHECK(checked_sum("blocks", {1, 2, 3}) == 6);
  const int64_t most = std::numeric_limits<int64_t>::max();
  CHECK(checked_sum("blocks", {most - 1, 1}, most) == most);
  CHECK_THROWS_AS(checked_sum("blocks", {most, 1}, most), Error);
}

TEST_CASE("out of memory: the message has the bytes and the innermost purpose of the thread") {
  CHECK(std::string(OutOfMemory(12).what()) == "out of memory (wanted 12 bytes)");
  const MemoryFor outer("training");
  {
    const MemoryFor inner("the model's parameters");
    CHECK(std::string(OutOfMemory(512'000'000).what()) == "out of memory (wanted 512 MB for the model's parameters)");
  }
  CHECK(std::string(OutOfMemory(999'999).what()) == "out of memory (wanted 999999 bytes for training)");
  CHECK(std::string(OutOfMemory(1, "a table").what()) == "out of memory (wanted 1 bytes for a table)");
}

}  // namespace capstan
