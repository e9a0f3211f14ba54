// Method: the argument is reduced to a small interval (exp: by multiples of ln 2, log: by powers of two, sine and
// cosine: by quarter turns, in parts whose products are exact), where a Taylor series of fixed length is right to the
// last digit. The order of all operations is part of the result; the compiler may fuse none (-ffp-contract=off).
#include "core/base/math.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace capstan::math {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;

uint64_t bits_of(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

double from_bits(uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

/// 2^k for -1022 <= k <= 1023.
double power_of_two(int k) { return from_bits(static_cast<uint64_t>(1023 + k) << 52); }

/// c[0] x^(Size - 1) + ... + c[Size - 1]
template <size_t Size>
double polynomial(const double (&c)[Size], double x) {
  double sum = c[0];
  for (size_t i = 1; i < Size; ++i) sum = sum * x + c[i];
  return sum;
}

/// x less the nearest whole number of quarter turns (fdlibm's three parts of pi / 2), and that number.
struct Turned {
  double rest;
  int64_t quarter;
};
Turned turned(double x) {
  const double k = std::floor(x * 0.63661977236758134308 + 0.5);
  double rest = x - k * 1.57079632673412561417e+00;
  rest -= k * 6.07710050630396597660e-11;
  rest -= k * 2.02226624879595063154e-21;
  return {rest, static_cast<int64_t>(k) & 3};
}

double sine(double x) {
  constexpr double terms[] = {1.0 / 355687428096000, -1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800,
                              1.0 / 362880,          -1.0 / 5040,          1.0 / 120,        -1.0 / 6};
  const double z = x * x;
  return x + x * z * polynomial(terms, z);
}

double cosine(double x) {
  constexpr double terms[] = {1.0 / 20922789888000, -1.0 / 87178291200, 1.0 / 479001600, -1.0 / 3628800,
                              1.0 / 40320,          -1.0 / 720,         1.0 / 24,        -1.0 / 2};
  const double z = x * x;
  return 1 + z * polynomial(terms, z);
}

}  // namespace

double exp(double x) {
  constexpr double terms[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
                              1.0 / 362880,     1.0 / 40320,     1.0 / 5040,     1.0 / 720,
                              1.0 / 120,        1.0 / 24,        1.0 / 6,        1.0 / 2};
  if (std::isnan(x)) return x;
  if (x > 709.782712893384) return infinity;
  if (x < -745.2) return 0;
  const double k = std::floor(x * 1.44269504088896340736 + 0.5);
  const double r = (x - k * ln2_high) - k * ln2_low;
  const double y = 1 + (r + r * r * polynomial(terms, r));
  const int power = static_cast<int>(k), half = power / 2;  // 2^k in two factors: 2^1024 alone is infinite
  return y * power_of_two(half) * power_of_two(power - half);
}

double log(double x) {
  constexpr double terms[] = {2.0 / 23, 2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13,
                              2.0 / 11, 2.0 / 9,  2.0 / 7,  2.0 / 5,  2.0 / 3};
  if (std::isnan(x) || x == infinity) return x;
  if (x < 0) return std::numeric_limits<double>::quiet_NaN();
  double k = 0;
  if (x < std::numeric_limits<double>::min()) x *= 0x1p54, k = -54;
  if (x == 0) return -infinity;
  // x = 2^k m with m between sqrt(1/2) and sqrt(2), and ln m = 2 artanh((m - 1) / (m + 1)).
  constexpr uint64_t one = 0x3ff0000000000000, sqrt_half = 0x3fe6a09e667f3bcd;
  const uint64_t raised = bits_of(x) + (one - sqrt_half);
  k += static_cast<double>(static_cast<int>(raised >> 52) - 1023);
  const double f = from_bits((raised & 0x000fffffffffffff) + sqrt_half) - 1;
  const double s = f / (2 + f), z = s * s, half_square = 0.5 * f * f;
  return k * ln2_high - ((half_square - (s * (half_square + z * polynomial(terms, z)) + k * ln2_low)) - f);
}

double log1p(double x) {
  const double y = 1 + x;
  return y == 1 || y == infinity ? x : log(y) * (x / (y - 1));
}

double pow(double x, double y) {
  if (y == 0) return 1;
  return x == 0 ? (y > 0 ? 0 : infinity) : exp(y * log(x));
}

double sin(double x) {
  const Turned t = turned(x);
  const double size = t.quarter % 2 == 0 ? sine(t.rest) : cosine(t.rest);
  return t.quarter < 2 ? size : -size;
}

double cos(double x) {
  const Turned t = turned(x);
  const double size = t.quarter % 2 == 0 ? cosine(t.rest) : sine(t.rest);
  return t.quarter == 0 || t.quarter == 3 ? size : -size;
}

}  // namespace capstan::math
