#include "core/strings/pattern.hpp"

#include <doctest/doctest.h>

#include <string>

namespace capstan {

TEST_CASE("a star stands for any run of characters") {
  CHECK(matches("blocks.0.mixer", "blocks.*"));
  CHECK(matches("blocks.0.mixer", "*"));
  CHECK(matches("blocks.0.mixer", "*.0.*"));
  CHECK(matches("blocks.0.mixer", "blocks.0.mixer"));
  CHECK(matches("blocks.0.mixer", "blocks.0.mixer*"));
  CHECK(matches("", "*"));
  CHECK(matches("aXbXc", "a*X*c"));
  CHECK(matches("abab", "*ab"));
  CHECK_FALSE(matches("blocks.0.mixer", "blocks"));
  CHECK_FALSE(matches("blocks.0.mixer", "blocks.1.*"));
  CHECK_FALSE(matches("ab", "ab*ab"));  // the two ends may not overlap
  CHECK_FALSE(matches("", "a*"));
  const std::string many(5000, 'a');
  CHECK_FALSE(matches(many, "*a*a*a*a*a*a*a*a*a*a*a*a*a*b"));  // no backtracking
}

}  // namespace capstan
