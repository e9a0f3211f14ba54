// A short convolution in front of a mixer. Gradients are in gradcheck_short_conv.cpp.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/nn/blocks/short_conv_cases.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

TEST_CASE("a mixer with a short convolution in front does what every mixer must do") {
  for (const MixerCase& c : short_conv_cases()) check_mixer(c);
}

TEST_CASE("what the mixer reads is the sum of a token and the weighted tokens before it in its document") {
  const Segments segments = ragged_segments(23);
  const Array x = normal_array({4, 23, width}, 5);
  for (const MixerCase& c : short_conv_cases()) {
    INFO(c.name);
    const auto built = built_mixer(c, /*causal=*/true, 23);
    const Array kernel = built.store->known("short_conv.kernel")->var.value();
    REQUIRE(kernel.shape() == Shape{width, c.short_conv});
    Array read = x.clone();
    for (const Segments::Span& span : segments.spans())
      for (int64_t t = span.begin; t < span.end; ++t)
        for (int64_t d = 0; d < width; ++d) {
          double sum = 0;
          for (int64_t back = 0; back < std::min(c.short_conv, t - span.begin + 1); ++back)
            sum += static_cast<double>(kernel[d * c.short_conv + c.short_conv - 1 - back]) *
                   x[(span.row * 23 + t - back) * width + d];
          read.mutable_data()[(span.row * 23 + t) * width + d] += static_cast<real>(sum);
        }
    const auto alone = built_mixer(c.config, /*causal=*/true, 23);  // weights are drawn by name
    const Array expected = forward(*alone.module, read, segments);
    CHECK(relative_error(forward(*built.module, x, segments), expected, 1) <= layer_tolerance);
  }
}

TEST_CASE("decoding goes on with the sequences that were selected, as often as they were") {
  for (const MixerCase& c : short_conv_cases()) {
    INFO(c.name);
    const auto built = built_mixer(c, /*causal=*/true, 16);
    const Array x = normal_array({2, 16, width}, 7);
    const auto state = built.module->make_state(2), other = built.module->make_state(3);
    const Array first = decoded(*built.module, tokens(x, 0, 11), 5, *state);
    state->select({1, 0, 1});
    Array three(Shape{3, 16, width});
    for (int64_t row = 0; row < 3; ++row)
      std::copy_n(x.data() + (row == 1 ? 0 : 1) * 16 * width, 16 * width, three.mutable_data() + row * 16 * width);
    const Array all = decoded(*built.module, three, 5, *other);
    for (int64_t t = 11; t < 16; ++t) {
      const Array next = built.module->step(Var(tokens(three, t, t + 1).reshape({3, width})), *state).value();
      CHECK(relative_error(next, tokens(all, t, t + 1).reshape({3, width}), 1) <= layer_tolerance);
    }
    const auto alone = built_mixer(c.config, /*causal=*/true, 16);
    CHECK(state->elements(16) == (c.short_conv - 1) * width + alone.module->make_state(3)->elements(16));
  }
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
