// The gated attention unit: what every mixer must do, its normalisers, and what went wrong elsewhere (systems.md 7).
#include <doctest/doctest.h>

#include "tests/nn/gau_cases.hpp"

CAPSTAN_BEGIN
namespace testing {
namespace {

TEST_CASE("GAU does what every mixer must do, in all its forms") {
  for (const MixerCase& c : gau_cases()) check_mixer(c);
}

}  // namespace
}  // namespace testing
CAPSTAN_END
