// GAU token by token: the keys and values of all tokens so far, and the position bias in their order.
#include <algorithm>

#include "core/base/error.hpp"
#include "nn/systems/gated/kernels/passes.hpp"
#include "nn/systems/gau/mixer.hpp"
#include "nn/systems/quadratic/key_value_cache.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

struct GauDecodeState final : MixerState {
  GauDecodeState(int64_t batch, int64_t key_width_, int64_t value_width_)
      : key_width(key_width_), value_width(value_width_), cache(batch, key_width, value_width) {}

  void reset() override { cache.clear(); }
  void select(const std::vector<int64_t>& rows) override { cache.select(rows); }
  int64_t elements(int64_t seen) const override { return seen * (key_width + value_width); }

  int64_t key_width, value_width;
  KeyValueCache cache;
  Array bias;  // entry size - 1 - d is b_d, so that a row of the cache reads it forwards; empty: none
};

}  // namespace

std::unique_ptr<MixerState> Gau::make_state(int64_t batch) const {
  if (!shape_.causal) throw std::logic_error("gau: a bidirectional mixer does not decode");
  return new_state<GauDecodeState>(batch, config_.key_dim, unit_.hidden());
}

void Gau::prepare_bias(Array& bias, int64_t tokens) const {
  constexpr int64_t fewest = 64;
  const bool limited = config_.position_bias == RelativeBiasKind::toeplitz;
  check(!limited || tokens <= shape_.max_length, "gau: token {} is past the {} positions of this mixer", tokens - 1,
        shape_.max_length);
  if (tokens <= bias.size()) return;
  int64_t length = std::max({fewest, 2 * bias.size(), tokens});
  if (limited) length = std::min(length, shape_.max_length);
  if (const Var table = unit_.bias(length)) {
    const Array& all = table.value();  // b_d at length - 1 + d
    bias = Array(Shape{length});
    std::reverse_copy(all.data() + length - 1, all.data() + all.size(), bias.mutable_data());
  }
}

Var Gau::prefill(const Var& x, MixerState& mixer_state) const {
  auto& state = own_state<GauDecodeState>(mixer_state, "gau");
  KeyValueCache& cache = state.cache;
  check(x.rank() == 3 && x.dim(0) == cache.batch() && x.dim(2) == shape_.width,
        "gau: prefill: x is {}, but must be ({}, T, {})", x.shape(), cache.batch(), shape_.width);
  const int64_t length = x.dim(1), past = cache.count();
  if (length == 0) return x;
  prepare_bias(state.bias, past + length);
  const bool prefix = shape_.prefix && past == 0;
  const GatedUnit::Parts parts = unit_.project(x, positions_from(past, cache.batch(), length));
  cache.append(parts.views[1].value().data(), state.key_width, parts.value.value().data(), state.value_width, length);
  const Var bias = unit_.bias(past + length);
  const AttentionOptions options =
      unit_.attention_options(Segments::full(cache.batch(), length), Context{}, !prefix, past);
  return unit_.output(parts.gate, Var(cache.attend_last(length, options, bias ? bias.value() : Array(),
                                                        parts.views[0].value().data(), state.key_width)));
}

Var Gau::step(const Var& x, MixerState& mixer_state) const {
  auto& state = own_state<GauDecodeState>(mixer_state, "gau");
  const int64_t batch = state.cache.batch(), t = state.cache.count();
  check(x.shape() == Shape{batch, shape_.width}, "gau: step: x is {}, but must be ({}, {})", x.shape(), batch,
        shape_.width);
  prepare_bias(state.bias, t + 1);
  const GatedUnit::StepParts parts = unit_.step_project(x.value(), t, state.decode());
  state.cache.append(parts.view(1, 0), state.key_width, parts.value(0), parts.uvz.dim(1), 1);
  const KernelScales scales = unit_.scales(t + 1);
  const real* const bias = state.bias.empty() ? nullptr : state.bias.data() + state.bias.size() - 1 - t;
  Array gated(Shape{batch, state.value_width});
  real* const out = gated.mutable_data();
  const int64_t work = (t + 1) * (state.key_width + state.value_width);
  for_value_columns(batch, state.value_width, work, [&](int64_t row, int64_t begin, int64_t end) {
    real* const y = out + row * state.value_width + begin;
    kernels::attention_decode(state.cache.columns(row, begin, end), config_.kernel, static_cast<real>(scales.logit),
                              bias, static_cast<real>(scales.output), parts.view(0, row), y);
    kernels::gate(parts.gate(row) + begin, y, y, end - begin);
  });
  return Var(unit_.step_output(gated, state.decode()));
}

}  // namespace capstan::CAPSTAN_PRECISION
