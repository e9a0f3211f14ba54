// FLASH: what every mixer must do, its two parts, and what went wrong elsewhere (systems.md 5.2 and 7).
#include <doctest/doctest.h>

#include "tests/nn/flash_cases.hpp"

CAPSTAN_BEGIN
namespace testing {
namespace {

TEST_CASE("FLASH does what every mixer must do, in all its forms") {
  for (const MixerCase& c : flash_cases()) check_mixer(c);
}

}  // namespace
}  // namespace testing
CAPSTAN_END
