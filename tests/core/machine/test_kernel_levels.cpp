#include <doctest/doctest.h>

#include <string>

#include "core/base/error.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/machine/kernel_levels.hpp"
#include "tests/support/texts.hpp"

using namespace capstan;

namespace {

std::string refusal_of(const std::string& level) {
  return message_of<ConfigError>([&] { set_kernel_level(level); });
}

}  // namespace

TEST_CASE("kernel levels: those of the CPU can be had in a portable build, others are refused by name") {
  const std::string before = kernel_level();
  const bool portable = before.rfind("x86-64-v", 0) == 0;
  real numbers[3] = {1, 2, 3};
  for (const std::string level : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    INFO(level);
    const std::string refusal = refusal_of(level);
    const bool obeyed = refusal == "no error";
    CHECK((obeyed ? kernel_level() == level : kernel_level() == before));
    CHECK(obeyed == (portable && cpu_has_level(level)));
    if (!obeyed) CHECK(contains(refusal, portable ? "this CPU cannot run it" : "only " + before + " kernels"));
    const real sum = numbers[2] + 1;
    kernels::add_into(numbers, &sum, 0);
    kernels::fill(numbers, 3, sum);
    CHECK(numbers[0] == sum);
    if (portable) set_kernel_level(before);
  }
  for (const std::string level : {"", "x86-64", "x86-64-v5", "avx2", "x86-64-v3 "}) {
    INFO(level);
    CHECK_FALSE(cpu_has_level(level));
    CHECK(contains(refusal_of(level),
                   portable ? "there is no such level; it can be x86-64-v2" : "cmake --preset portable"));
    CHECK(kernel_level() == before);
  }
}
