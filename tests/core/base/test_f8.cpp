// 8-bit floats.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "core/base/f8.hpp"

namespace capstan::testing {
namespace {

std::vector<float> all_values() {
  std::vector<float> values;
  for (int bits = 0; bits < 127; ++bits) values.push_back(to_float(F8{static_cast<uint8_t>(bits)}));
  return values;
}

}  // namespace

TEST_CASE("8-bit floats: values ascend from 0 over the least 2^-9 to 448, and each is its own nearest") {
  const std::vector<float> values = all_values();
  CHECK(values[0] == 0);
  CHECK(values[1] == 0x1p-9f);
  CHECK(values[8] == 0x1p-6f);
  CHECK(values[56] == 1);
  CHECK(values[126] == largest_f8);
  for (size_t bits = 0; bits < values.size(); ++bits) {
    if (bits > 0) CHECK(values[bits] > values[bits - 1]);
    CHECK(to_f8(values[bits]).bits == bits);
    CHECK(to_f8(-values[bits]).bits == (bits | 0x80));
    CHECK(to_float(to_f8(-values[bits])) == -values[bits]);
  }
}

TEST_CASE(
    "8-bit floats: a number becomes the nearest, of two as near the even one; what is beyond becomes the largest") {
  const std::vector<float> values = all_values();
  for (size_t bits = 1; bits < values.size(); ++bits) {
    const float middle = (values[bits - 1] + values[bits]) / 2;
    CHECK(to_f8(std::nextafter(middle, 0.0F)).bits == bits - 1);
    CHECK(to_f8(std::nextafter(middle, 1000.0F)).bits == bits);
    CHECK(to_f8(middle).bits == (bits % 2 == 0 ? bits : bits - 1));
  }
  for (const float large : {449.0F, 1e30F, INFINITY}) CHECK(to_float(to_f8(large)) == largest_f8);
  CHECK(std::isnan(to_float(to_f8(NAN))));
}

}  // namespace capstan::testing
