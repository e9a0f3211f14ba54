// A mixer of which only forward() is written (nn/mixer/forward_mixer.hpp) does what every mixer must do, and decodes by
// reading again.
#include <doctest/doctest.h>

#include "tests/nn/mixer/fading_mixer.hpp"
#include "tests/nn/mixer/mixer_suite.hpp"
#include "tests/nn/module_gradients.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

namespace {

MixerCase fading_case(int64_t longest, int64_t short_conv) {
  static const bool registered = [] {
    register_mixer<FadingConfig>();
    return true;
  }();
  REQUIRE(registered);
  CustomMixerConfig config("test-fading");
  config.options = AnyConfig::of(FadingConfig{longest});
  MixerCase c{fmt::format("forward only, longest {}, short_conv {}", longest, short_conv), config};
  c.any_length = longest == 0;
  c.short_conv = short_conv;
  return c;
}

TEST_CASE("a mixer with forward() alone does what every mixer must do: the default decoding equals forward()") {
  check_mixer(fading_case(0, 0));
  check_mixer(fading_case(150, 0));
  check_mixer(fading_case(0, 4));
}

TEST_CASE("a mixer with forward() alone says so, also after a short convolution") {
  for (const int64_t taps : {0, 4}) CHECK(built_mixer(fading_case(0, taps), true, 16).module->forward_only());
  LayerConfig attention;
  ParamStore store;
  CHECK(!Block(Scope(store, 1), MixerShape{8, 16, true}, attention, 0).mixer().forward_only());
}

TEST_CASE("tokens after a prefix are decoded as forward() gives them, one by one and in pieces") {
  const int64_t end = 23, prefix = 9;
  const auto built = built_mixer(fading_case(0, 0), true, end, /*prefix=*/true);
  const Array x = normal_array({2, end, width}, 31);
  Context context = Context::evaluation(2, end);
  Ids ids = context.segments.ids().clone();
  for (int64_t row = 0; row < 2; ++row) std::fill_n(ids.mutable_data() + row * end + prefix, end - prefix, 0);
  context.prefixes = Segments(ids);
  const Array y = built.module->forward(Var(x), context).value();
  const auto state = built.module->make_state(2);
  std::vector<int64_t> pieces{prefix, 5};
  pieces.resize(2 + static_cast<size_t>(end - prefix - 5), single_step);
  CHECK(relative_error(in_pieces(*built.module, x, pieces, *state), y, 1) <= layer_tolerance);
  // A sequence that is copied still knows where its prefix ended.
  state->reset();
  built.module->prefill(Var(tokens(x, 0, prefix)), *state);
  const auto copied = built.module->make_state(2);
  for (int64_t row = 0; row < 2; ++row) copied->copy(row, *state, row);
  const Var rest(tokens(x, prefix, end));
  CHECK(identical(built.module->prefill(rest, *copied).value(), built.module->prefill(rest, *state).value()));
}

TEST_CASE("gradients of a mixer with forward() alone") {
  if (sizeof(real) == 4) return;  // differences need double
  const Threads one(1);
  for (const bool causal : {true, false}) {
    const auto built = built_mixer(fading_case(0, 0), causal, 13);
    check_gradients(
        causal ? "causal" : "bidirectional", *built.store, {4, 13, width},
        [&](const Var& x) { return built.module->forward(x, {ragged_segments(13)}); }, 12);
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
