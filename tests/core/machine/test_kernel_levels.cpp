#include <doctest/doctest.h>

#include <string>

#include "core/base/error.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/machine/kernel_levels.hpp"

using namespace capstan;

namespace {

/// What set_kernel_level(level) says against it; empty when it obeys.
std::string refusal_of(const std::string& level) {
  try {
    set_kernel_level(level);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("kernel levels: those of the CPU can be had in a portable build, others are refused by name") {
  const std::string before = kernel_level();
  const bool portable = before.rfind("x86-64-v", 0) == 0;
  real numbers[3] = {1, 2, 3};
  for (const std::string level : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    INFO(level);
    const std::string refusal = refusal_of(level);
    CHECK((refusal.empty() ? kernel_level() == level : kernel_level() == before));
    CHECK(refusal.empty() == (portable && cpu_has_level(level)));
    if (!refusal.empty()) CHECK(says(refusal, portable ? "this CPU cannot run it" : "only " + before + " kernels"));
    const real sum = numbers[2] + 1;
    kernels::add_into(numbers, &sum, 0);
    kernels::fill(numbers, 3, sum);
    CHECK(numbers[0] == sum);
    if (portable) set_kernel_level(before);
  }
  for (const std::string level : {"", "x86-64", "x86-64-v5", "avx2", "x86-64-v3 "}) {
    INFO(level);
    CHECK_FALSE(cpu_has_level(level));
    CHECK(
        says(refusal_of(level), portable ? "there is no such level; it can be x86-64-v2" : "cmake --preset portable"));
    CHECK(kernel_level() == before);
  }
}
