// Products and sums of sizes that throw Error where they would wrap around. tests/core/base/test_sizes.cpp.
#include "core/base/sizes.hpp"

#include <string>

#include "core/base/error.hpp"

namespace capstan {
namespace {

[[noreturn]] void refuse(const char* what, std::initializer_list<int64_t> sizes, const char* sign) {
  std::string text;
  for (const int64_t size : sizes) text += (text.empty() ? "" : sign) + std::to_string(size);
  throw Error(fmt::format("{}: {} is more than this program can count: lower the sizes", what, text));
}

}  // namespace

int64_t checked_product(const char* what, std::initializer_list<int64_t> factors, int64_t most) {
  int64_t product = 1;
  for (const int64_t factor : factors)
    if (factor < 0 || __builtin_mul_overflow(product, factor, &product) || product > most) refuse(what, factors, " x ");
  return product;
}

int64_t checked_sum(const char* what, std::initializer_list<int64_t> terms, int64_t most) {
  int64_t sum = 0;
  for (const int64_t term : terms)
    if (term < 0 || __builtin_add_overflow(sum, term, &sum) || sum > most) refuse(what, terms, " + ");
  return sum;
}

}  // namespace capstan
