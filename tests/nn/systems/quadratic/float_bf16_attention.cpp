// Attention whose products are in bf16, beside the same in floats. Texts of 160 have whole blocks only, those of 131
// whole and broken ones, of which the latter are in floats.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/nn/systems/quadratic/op_cases.hpp"
#include "tests/support/bf16_products.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

/// The value, then the gradients of all inputs.
std::vector<Array> results(const AttentionCase& c, const Segments& segments, const std::vector<Array>& values,
                           bool bf16) {
  std::vector<Var> in;
  for (const Array& value : values) in.push_back(Var::leaf(value.clone()));
  AttentionOptions options = c.options(segments);
  options.bf16 = bf16;
  TapeScope scope;
  const Var y = attention(in[0], in[1], in[2], c.biased ? in[3] : Var(), segments, options);
  std::vector<Array> all{y.value()};
  scope.tape().backward({y}, {normal_array(y.shape(), 9)});
  for (const Var& input : in) all.push_back(input.grad());
  return all;
}

std::vector<Array> inputs_of(const AttentionCase& c, const Segments& segments) {
  std::vector<Array> values;
  for (const Shape& shape : c.shapes(segments, 32, 144)) values.push_back(normal_array(shape, 40 + values.size(), 0.4));
  return values;
}

std::vector<AttentionCase> cases() {
  std::vector<AttentionCase> some;
  for (const auto& kernel : enum_names(AttentionKernel{}))
    for (const bool causal : {true, false}) {
      some.push_back({kernel.value, causal, 0, 1, true, true});
      some.push_back({kernel.value, causal, 64, 2, false, false});
      some.push_back({kernel.value, causal, 0, 2, false, false});
    }
  return some;
}

}  // namespace

TEST_CASE("attention in bf16: values and gradients within 2 % of those in floats, and rounded where blocks are whole") {
  const Bf16Products products;
  if (!products.possible()) return;
  for (const AttentionCase& c : cases())
    for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{160, 131, 16}, {17}}) {
      INFO(c.name(), ", longest ", lengths.front());
      const Segments segments = segments_of_lengths(lengths, lengths.front());
      const std::vector<Array> values = inputs_of(c, segments);
      const std::vector<Array> expected = results(c, segments, values, false), got = results(c, segments, values, true);
      for (size_t i = 0; i < got.size(); ++i) CHECK_MESSAGE(relative_error(got[i], expected[i]) < 0.02, i);
      CHECK(same_bits(got, expected) == (lengths.front() == 17));
    }
}

TEST_CASE("attention in bf16: the same bits on one thread and on two") {
  const Bf16Products products;
  if (!products.possible()) return;
  const Segments segments = segments_of_lengths({160, 131, 16}, 160);
  for (const AttentionCase& c : cases()) {
    INFO(c.name());
    const std::vector<Array> values = inputs_of(c, segments);
    const auto on = [&](int count) {
      const Threads threads(count);
      return results(c, segments, values, true);
    };
    CHECK(same_bits(on(1), on(2)));
  }
}

TEST_CASE(
    "attention in bf16: later tokens of 10^4 leave every bit of earlier outputs alone, padding may hold anything") {
  const Bf16Products products;
  if (!products.possible()) return;
  const Segments segments = segments_of_lengths({160, 128}, 160);
  for (const AttentionCase& c : cases()) {
    if (!c.causal || c.chunk > 0) continue;
    INFO(c.name());
    const std::vector<Array> values = inputs_of(c, segments);
    const Array y = results(c, segments, values, true).front();
    for (const int64_t cut : {1, 63, 64, 65, 127, 128, 159}) {
      std::vector<Array> changed;
      for (size_t i = 0; i < values.size(); ++i) {
        Array later = values[i].clone();
        const int64_t width = later.size() / 320;
        for (int64_t n = cut * width; i < 3 && n < 160 * width; ++n)
          later.mutable_data()[n] = real{1e4} * (1 - later[n]);
        for (int64_t n = 288 * width; i < 3 && n < 320 * width; ++n) later.mutable_data()[n] = static_cast<real>(NAN);
        changed.push_back(later);
      }
      const Array z = results(c, segments, changed, true).front();
      CHECK_MESSAGE(std::equal(y.data(), y.data() + cut * y.dim(2), z.data()), cut);
      CHECK(std::equal(y.data() + 160 * y.dim(2), y.data() + y.size(), z.data() + 160 * y.dim(2)));
    }
  }
}
