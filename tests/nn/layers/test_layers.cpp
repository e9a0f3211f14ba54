// Dropout, positions, and blocks: what the layers promise beyond their gradients.
#include <doctest/doctest.h>

#include <cmath>

#include "core/fused/feed_forward.hpp"
#include "core/fused/linear.hpp"
#include "core/fused/norm.hpp"
#include "core/kernels/activation.hpp"
#include "core/ops/ops.hpp"
#include "nn/blocks/block.hpp"
#include "nn/layers/feed_forward.hpp"
#include "nn/systems/mixer_config.hpp"
#include "tests/nn/mixer/mixer_suite.hpp"
#include "tests/nn/systems/samples.hpp"
#include "tests/support/activations.hpp"
#include "tests/support/agreement.hpp"
#include "tests/support/arrays.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

/// The mask that examples get at a step: ones through the dropout.
Array mask(const Dropout& dropout, const std::vector<int32_t>& examples, int64_t length, uint64_t step) {
  const auto batch = static_cast<int64_t>(examples.size());
  const Context context{Segments::full(batch, length), true, step, Ids({batch}, examples)};
  return dropout(Var(Array({batch, length, width}, real{1})), context).value();
}

TEST_CASE("dropout: which elements become zero depends on example, position, channel, step and path only") {
  ParamStore store;
  const Scope scope(store, 3);
  const Dropout dropout(scope / "a", 0.3);
  const Array expected = mask(dropout, {10, 11, 12}, 40, 5);
  const auto row = [&](int64_t example) { return expected.rows(example - 10, example - 9); };
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    CHECK(identical(mask(dropout, {10, 11, 12}, 40, 5), expected));
    const Array moved = mask(dropout, {12, 99, 10}, 40, 5);  // other places in the batch, other mates
    CHECK(identical(moved.rows(0, 1), row(12)));
    CHECK(identical(moved.rows(2, 3), row(10)));
    for (const int32_t example : {10, 11, 12})  // micro-batches of one
      CHECK(identical(mask(dropout, {example}, 40, 5), row(example)));
    const Array padded = mask(dropout, {10, 11, 12}, 57, 5);
    CHECK(identical(tokens(padded, 0, 40), expected));
  }
  CHECK_FALSE(identical(row(10), row(11)));
  CHECK_FALSE(identical(tokens(expected, 0, 20), tokens(expected, 20, 40)));
  CHECK_FALSE(identical(mask(dropout, {10, 11, 12}, 40, 6), expected));
  CHECK_FALSE(identical(mask(Dropout(scope / "b", 0.3), {10, 11, 12}, 40, 5), expected));
  ParamStore other;
  CHECK_FALSE(identical(mask(Dropout(Scope(other, 4) / "a", 0.3), {10, 11, 12}, 40, 5), expected));
}

TEST_CASE("dropout: the share that vanishes is the rate, and the mean stays") {
  ParamStore store;
  for (const double rate : {0.1, 0.5, 0.9}) {
    const Array y = mask(Dropout(Scope(store, 1) / "drop", rate), {1, 2, 3, 4}, 500, 0);
    double zeros = 0;
    for (int64_t i = 0; i < y.size(); ++i) {
      zeros += y[i] == 0 ? 1 : 0;
      if (y[i] != 0) REQUIRE(y[i] == static_cast<real>(1 / (1 - rate)));
    }
    const double count = static_cast<double>(y.size());
    CHECK(std::abs(zeros / count - rate) <= 4 * std::sqrt(rate * (1 - rate) / count));
  }
}

TEST_CASE("dropout: does nothing in evaluation or at rate 0") {
  ParamStore store;
  const Scope scope(store, 1);
  const Var x(normal_array({2, 3, width}, 1));
  Context context{Segments::full(2, 3), true, 0, Ids({2}, 0)};
  CHECK(Dropout(scope, 0)(x, context).same(x));
  CHECK_FALSE(Dropout(scope, 0.5)(x, context).same(x));
  context.training = false;
  CHECK(Dropout(scope, 0.5)(x, context).same(x));
}

TEST_CASE("sinusoidal positions: angles in double, of any position") {
  const Ids positions(Shape{1, 4}, {0, 1, 17, 999999});
  const int64_t odd_width = 7;
  const Array table = sinusoidal_positions(positions, odd_width, SinusoidOrder::interleaved),
              halves = sinusoidal_positions(positions, odd_width, SinusoidOrder::halves);
  REQUIRE(table.shape() == Shape{1, 4, odd_width});
  for (int64_t p = 0; p < 4; ++p) {
    for (int64_t c = 0; c < odd_width; ++c) {
      const int64_t pair = c / 2;
      const double angle =
          positions[p] / std::pow(10000.0, static_cast<double>(2 * pair) / static_cast<double>(odd_width));
      const double expected = c % 2 == 0 ? std::sin(angle) : std::cos(angle);
      CHECK(std::abs(static_cast<double>(table[p * odd_width + c]) - expected) <= (sizeof(real) == 4 ? 1e-7 : 1e-9));
      const int64_t place = c % 2 == 0 ? pair : (odd_width + 1) / 2 + pair;
      CHECK(halves[p * odd_width + place] == table[p * odd_width + c]);
    }
  }
}

LayerConfig layer_config(const MixerConfig& mixer, NormPlacement placement) {
  LayerConfig config;
  config.mixer = mixer;
  config.feed_forward = {FeedForwardKind::swiglu, 1.5, true};
  config.norm_placement = placement;
  return config;
}

TEST_CASE("a block is wired as its header says, dropout included") {
  const Context context{ragged_segments(29), true, 8, Ids({4}, std::vector<int32_t>{3, 9, 4, 0})};
  const Var x(normal_array({4, 29, width}, 2));
  const MixerConfig mixer_config = any_mixer(5);
  for (const NormPlacement placement : {NormPlacement::pre, NormPlacement::post}) {
    const LayerConfig config = layer_config(mixer_config, placement);
    ParamStore block_store, store;
    const Scope scope(store, 1);
    const MixerShape shape{width, 29, true, 1};
    const Block block(Scope(block_store, 1), shape, config, 0.3);
    const auto mixer = make_mixer(scope / "mixer", shape, mixer_config);
    const Norm mixer_norm(scope / "mixer_norm", config.norm, width),
        norm(scope / "feed_forward_norm", config.norm, width);
    const FeedForward feed_forward(scope / "feed_forward", config.feed_forward, width, 1);
    const Dropout mixer_drop(scope / "mixer_dropout", 0.3), drop(scope / "feed_forward_dropout", 0.3);
    redraw(block_store);
    redraw(store);
    CHECK(block_store.count() == store.count());
    Var y;
    if (placement == NormPlacement::pre) {
      const Var mixed = x + mixer_drop(mixer->forward(mixer_norm(x), context), context);
      y = mixed + drop(feed_forward(norm(mixed)), context);
    } else {
      const Var mixed = mixer_norm(x + mixer_drop(mixer->forward(x, context), context));
      y = norm(mixed + drop(feed_forward(mixed), context));
    }
    CHECK(relative_error(block.forward(x, context).value(), y.value()) <= fused_tolerance);
  }
}

TEST_CASE("norms and feed-forward networks are what their names say") {
  const Var x(normal_array({2, 3, width}, 5, 1));
  for (const auto& kind : enum_names(NormKind{})) {
    ParamStore store;
    const Norm norm(Scope(store, 1) / "norm", {kind.value, 0.3}, width);
    redraw(store);
    if (kind.value == NormKind::none) {
      CHECK(store.params().empty());
      CHECK(norm(x).same(x));
      continue;
    }
    const Var gain = store.find("norm.gain").var;
    const Var expected = kind.value == NormKind::layer ? layer_norm(x, gain, store.find("norm.bias").var, 0.3)
                         : kind.value == NormKind::rms ? rms_norm(x, gain, 0.3)
                                                       : scale_norm(x, gain, 0.3);
    CHECK_MESSAGE(relative_error(norm(x).value(), expected.value()) <= fused_tolerance, kind.name);
  }
  struct Kind {
    FeedForwardKind kind;
    Activation activation;
    bool gated;
  };
  const std::vector<Kind> kinds{{FeedForwardKind::relu, Activation::relu, false},
                                {FeedForwardKind::squared_relu, Activation::squared_relu, false},
                                {FeedForwardKind::gelu, Activation::gelu, false},
                                {FeedForwardKind::silu, Activation::silu, false},
                                {FeedForwardKind::glu, Activation::sigmoid, true},
                                {FeedForwardKind::swiglu, Activation::silu, true},
                                {FeedForwardKind::geglu, Activation::gelu, true}};
  CHECK(kinds.size() + 1 == enum_names(FeedForwardKind{}).size());  // all but `none`
  for (const Kind& k : kinds) {
    ParamStore store;
    const FeedForward feed_forward(Scope(store, 1), {k.kind, 2, true}, width, 1);
    redraw(store);
    const auto affine = [&](const Var& in, const std::string& name) {
      return linear(in, store.find(name + ".weight").var, store.find(name + ".bias").var);
    };
    const Var up = affine(x, "up");
    CHECK(up.dim(2) == (k.gated ? 4 : 2) * width);
    const Var hidden = !k.gated ? apply(k.activation, up)
                                : apply(k.activation, slice(up, 2, 0, 2 * width)) * slice(up, 2, 2 * width, 4 * width);
    const double error = relative_error(feed_forward(x).value(), affine(hidden, "down").value());
    CHECK_MESSAGE(error <= fused_tolerance, enum_name(k.kind), ": ", error);
  }
}

/// What a training pass over a block gives: its output, the input's gradient, then all parameters'.
std::vector<Array> trained_pass(const LayerConfig& config, bool recomputed) {
  ParamStore store;
  const Block block(Scope(store, 1), {width, 29, true, 1}, config, 0.3);
  redraw(store);
  store.finalize();
  const auto context = std::make_shared<const Context>(
      Context{ragged_segments(29), true, 8, Ids({4}, std::vector<int32_t>{3, 9, 4, 0})});
  const Var x = Var::leaf(normal_array({4, 29, width}, 2));
  TapeScope scope;
  const Var y = recomputed ? block.forward_recomputed(x, context) : block.forward(x, *context);
  const size_t parts = config.feed_forward.type == FeedForwardKind::none ? 1 : 2;
  CHECK((scope.tape().size() == parts) == recomputed);
  scope.tape().backward(std::vector<Var>{y}, {normal_array(y.shape(), 3)});
  std::vector<Array> results{y.value(), x.grad()};
  for (const Param& param : store.params()) results.push_back(param.var.grad());
  return results;
}

TEST_CASE("a block with dropout, recomputed in the pullback, gives what it gives plainly") {
  for (const MixerCase& c : mixer_samples(5)) {
    for (const NormPlacement placement : {NormPlacement::pre, NormPlacement::post}) {
      const LayerConfig config = layer_config(c.config, placement);
      const std::vector<Array> plainly = trained_pass(config, false), again = trained_pass(config, true);
      REQUIRE(again.size() == plainly.size());
      for (size_t i = 0; i < plainly.size(); ++i)
        CHECK_MESSAGE(relative_error(again[i], plainly[i]) <= (sizeof(real) == 4 ? 1e-6 : 1e-14), c.name, " result ",
                      i);
    }
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
