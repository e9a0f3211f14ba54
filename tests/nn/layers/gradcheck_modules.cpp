// Every module of nn/ against finite differences: of its input and of all its parameters.
#include <doctest/doctest.h>

#include "core/ops/ops.hpp"
#include "nn/layers/feed_forward.hpp"
#include "nn/systems/mixer_config.hpp"
#include "tests/nn/module_gradients.hpp"
#include "tests/nn/systems/samples.hpp"
#include "tests/support/agreement.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

TEST_CASE("linear, with each activation") {
  for (const auto& activation : enum_names(Activation{})) {
    for (const bool bias : {true, false}) {
      ParamStore store;
      const Linear linear(Scope(store, 1), {5, 37, bias});
      check_gradients(std::string("linear ") + activation.name, store, {2, 3, 5},
                      [&, a = activation.value](const Var& x) { return linear(x, a); });
    }
  }
}

TEST_CASE("embedding of tokens and of positions") {
  ParamStore store;
  const Embedding words(Scope(store, 1) / "words", {7, width}), positions(Scope(store, 1) / "positions", {13, width});
  const Segments segments = ragged_segments(13);
  Ids ids(segments.ids().shape());
  for (int64_t i = 0; i < ids.size(); ++i) ids.mutable_data()[i] = static_cast<int32_t>(i * i % 7);
  check_gradients("embedding", store, {4, 13, width},
                  [&](const Var& x) { return x * words(ids) + positions(segments.positions()); });
}

TEST_CASE("norms") {
  for (const auto& kind : enum_names(NormKind{})) {
    ParamStore store;
    const Norm norm(Scope(store, 1) / "norm", {kind.value, 1e-5}, 37);
    check_gradients(std::string("norm ") + kind.name, store, {2, 3, 37}, norm);
  }
}

TEST_CASE("feed-forward networks of every kind") {
  for (const auto& kind : enum_names(FeedForwardKind{})) {
    if (kind.value == FeedForwardKind::none) continue;
    for (const bool bias : {true, false}) {
      ParamStore store;
      const FeedForward feed_forward(Scope(store, 1), {kind.value, 2.5, bias}, 15, 1);
      CHECK(feed_forward.hidden() == 38);
      check_gradients(std::string("feed-forward ") + kind.name, store, {2, 3, 15}, feed_forward);
    }
  }
}

/// Training: dropout is on, its masks fixed by the counters.
Context training_context(const Segments& segments) {
  Ids examples({segments.batch()});
  for (int64_t row = 0; row < segments.batch(); ++row)
    examples.mutable_data()[row] = static_cast<int32_t>(10 + 3 * row);
  return {segments, true, 6, examples};
}

TEST_CASE("dropout in training") {
  ParamStore store;
  const Dropout dropout(Scope(store, 1) / "dropout", 0.4);
  const Context context = training_context(Segments::full(3, 7));
  check_gradients(
      "dropout", store, {3, 7, width}, [&](const Var& x) { return dropout(x, context); }, 100);
}

TEST_CASE("blocks, pre- and post-norm, with and without feed-forward, dropout on") {
  const Threads one(1);
  const Context context = training_context(ragged_segments(13));
  for (const auto& placement : enum_names(NormPlacement{})) {
    for (const FeedForwardKind kind : {FeedForwardKind::gelu, FeedForwardKind::swiglu, FeedForwardKind::none}) {
      for (const MixerConfig& mixer : {any_mixer(5), mixer_samples(5).back().config}) {
        LayerConfig config;
        config.mixer = mixer;
        config.feed_forward = {kind, 1.5, true};
        config.norm_placement = placement.value;
        ParamStore store;
        const Block block(Scope(store, 1), {width, 13, true, 1}, config, 0.3);
        check_gradients(
            std::string("block ") + placement.name + ", " + mixer_name(mixer), store, {4, 13, width},
            [&](const Var& x) { return block.forward(x, context); }, 12);
      }
    }
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
