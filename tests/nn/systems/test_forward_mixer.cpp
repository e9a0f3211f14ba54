// A mixer of which only forward() is written (nn/mixer/forward_mixer.hpp) does what every mixer must do, and decodes by
// reading again.
#include "nn/mixer/forward_mixer.hpp"

#include <doctest/doctest.h>

#include "core/ops/math.hpp"
#include "core/ops/matmul.hpp"
#include "nn/layers/layers.hpp"
#include "nn/mixer/prefix.hpp"
#include "nn/systems/register_mixer.hpp"
#include "tests/nn/mixer/mixer_suite.hpp"
#include "tests/nn/module_gradients.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace testing {

/// y_t = W sum over the tokens s that t sees of x_s 0.7^|t - s|.
struct FadingConfig {
  static constexpr const char* type_name = "test-fading";
  int64_t longest = 0;  // > 0: it refuses longer documents, as a mixer with parameters per position does
  bool has_position_limit() const { return longest > 0; }
  std::string prefix_obstacle() const { return ""; }
};

template <class Fields>
void describe(Fields& f, FadingConfig& c) {
  f("longest", c.longest, at_least(0), "tokens");
}

namespace {

Array fading_weights(const Segments& segments, bool causal) {
  const int64_t length = segments.length();
  Array weights = Array::zeros({segments.batch(), length, length});
  for (const Segments::Span& span : segments.spans())
    for (int64_t t = span.begin; t < span.end; ++t)
      for (int64_t s = span.begin; s < (causal ? t + 1 : span.end); ++s)
        weights.mutable_data()[(span.row * length + t) * length + s] =
            static_cast<real>(std::pow(0.7, static_cast<double>(std::abs(t - s))));
  return weights;
}

class Fading final : public ForwardMixer {
 public:
  Fading(const Scope& scope, const MixerShape& shape, const FadingConfig& config)
      : ForwardMixer(FadingConfig::type_name, shape),
        limited_(config.longest > 0),
        to_out_(scope / "to_out", {shape.width, shape.width, /*bias=*/true}) {}

  Var forward(const Var& x, const Context& context) const override {
    check(x.rank() == 3 && x.dim(2) == shape().width && x.dim(0) == context.segments.batch() &&
              x.dim(1) == context.segments.length(),
          "test-fading: x is {}", x.shape());
    check(!limited_ || context.segments.longest() <= shape().max_length, "test-fading: too long");
    return to_out_(mix_with_prefix(context, shape().causal, [&](const Segments& segments, bool causal) {
      return matmul(Var(fading_weights(segments, causal)), x);
    }));
  }

 private:
  bool limited_;
  Linear to_out_;
};

}  // namespace

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const FadingConfig& config) {
  return std::make_unique<Fading>(scope, shape, config);
}

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
  // Saved and restored, a sequence still knows where its prefix ended.
  state->reset();
  built.module->prefill(Var(tokens(x, 0, prefix)), *state);
  std::vector<real> saved;
  const auto restored = built.module->make_state(2);
  for (int64_t row = 0; row < 2; ++row) {
    saved.clear();
    state->visit(row, prefix, [&](real* first, int64_t count) { saved.insert(saved.end(), first, first + count); });
    CHECK(static_cast<int64_t>(saved.size()) == state->elements(prefix));
    auto from = saved.cbegin();
    restored->visit(row, prefix, [&](real* first, int64_t count) {
      std::copy_n(from, count, first);
      from += count;
    });
  }
  const Var rest(tokens(x, prefix, end));
  CHECK(identical(built.module->prefill(rest, *restored).value(), built.module->prefill(rest, *state).value()));
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
}  // namespace testing
}  // namespace capstan::CAPSTAN_PRECISION
