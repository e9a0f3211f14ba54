// data/tokenizers/normalisation: the first byte chooses the rule.
#include "core/base/error.hpp"
#include "core/strings/utf8.hpp"
#include "data/tokenizers/normalisation.hpp"
#include "tests/fuzz/target.hpp"

namespace capstan::fuzz {
namespace {

void read_text(std::string_view input) {
  const size_t choice = choose(input, 6);
  const Normalisation rule{static_cast<NormalForm>(choice % 3), choice >= 3};
  check_utf8(input, "input");
  const std::string result = normalised(input, rule);
  must("the normalised text is UTF-8", [&] { check_utf8(result, "result"); });
  const size_t cut = normalisation_boundary(input, input.size() / 2);
  const std::string parts = must("the sides of a boundary can be normalised", [&] {
    return normalised(input.substr(0, cut), rule) + normalised(input.substr(cut), rule);
  });
  require(parts == result, "a boundary does not change the normalised text");
}

const Registered normalisation_target("normalisation", read_text);

}  // namespace
}  // namespace capstan::fuzz
