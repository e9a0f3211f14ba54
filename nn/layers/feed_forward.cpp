#include "nn/layers/feed_forward.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/base/error.hpp"
#include "core/fused/feed_forward.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

const FeedForwardForm& form_of(FeedForwardKind kind) {
  check(kind != FeedForwardKind::none, "feed_forward: type none has no layers");
  return *std::find_if(std::begin(feed_forward_forms), std::end(feed_forward_forms),
                       [kind](const FeedForwardForm& form) { return form.kind == kind; });
}

int64_t hidden_width(const FeedForwardConfig& config, int64_t width) {
  return std::max<int64_t>(1, std::llround(config.expansion * static_cast<double>(width)));
}

}  // namespace

FeedForward::FeedForward(const Scope& scope, const FeedForwardConfig& config, int64_t width, double init_gain)
    : config_(config),
      hidden_(hidden_width(config, width)),
      up_(scope / "up", form_of(config.type).gated
                            ? LinearConfig{width, 2 * hidden_, config.bias, 1, /*output=*/false, {hidden_, hidden_}}
                            : LinearConfig{width, hidden_, config.bias}),
      down_(scope / "down", {hidden_, width, config.bias, init_gain}) {}

Var FeedForward::operator()(const Var& x) const {
  const FeedForwardForm& form = form_of(config_.type);
  const auto op = form.gated ? gated_feed_forward : feed_forward;
  return op(x, up_.weight(), up_.bias(), down_.weight(), down_.bias(), form.activation);
}

Array FeedForward::step(const Array& x, DecodeContext& decode) const {
  const auto [kind, name, activation, gated] = form_of(config_.type);
  if (!gated) return down_.step(up_.step(x, decode, activation), decode);
  const Array pre = up_.step(x, decode);
  Array hidden(x.shape().with(-1, hidden_));
  kernels::activation_forward({activation, hidden.size() / hidden_, hidden_, /*gated=*/true}, pre.data(), nullptr,
                              hidden.mutable_data());
  return down_.step(hidden, decode);
}

}  // namespace capstan::CAPSTAN_PRECISION
