// A mixer around another one. In training the op of core/ops/conv.cpp does the work; a decode state has the last
// inputs of each sequence, one fewer than taps, besides the inner mixer's state. tests/nn/blocks/test_short_conv.cpp
// holds that both agree.
#include "nn/blocks/short_conv.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/ops/ops.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// The last inputs of each sequence, and the state of the mixer after the convolution.
struct ShortConvState final : MixerState {
  ShortConvState(int64_t batch, int64_t taps, int64_t width, std::unique_ptr<MixerState> of_mixer)
      : MixerState(batch), before(Array::zeros(Shape{batch, taps - 1, width})), mixer(std::move(of_mixer)) {}

  void reset() override {
    MixerState::reset();
    mixer->reset();
  }
  void select(const std::vector<int64_t>& rows) override {
    MixerState::select(rows);
    // With one tap there is nothing to remember, and select_rows() leaves an array without elements as it is.
    if (before.empty()) before = Array(Shape{batch(), before.dim(1), before.dim(2)});
    mixer->select(rows);
  }
  void copy(int64_t to, MixerState& from, int64_t row) override {
    MixerState::copy(to, from, row);
    mixer->copy(to, *static_cast<ShortConvState&>(from).mixer, row);
  }
  std::vector<Array*> parts() override { return {&before}; }
  int64_t elements(int64_t position) const override {
    return before.dim(1) * before.dim(2) + mixer->elements(position);
  }
  void share(std::shared_ptr<DecodeContext> decode) override {
    mixer->share(decode);
    MixerState::share(std::move(decode));
  }

  /// The last rows of x (B, T, D) become those that the next token sees.
  void remember(const Array& x) {
    const int64_t kept = before.dim(1), width = before.dim(2), length = x.dim(1);
    const int64_t fresh = std::min(kept, length);
    for (int64_t sequence = 0; sequence < x.dim(0); ++sequence) {
      real* const rows = before.mutable_data() + sequence * kept * width;
      std::copy(rows + fresh * width, rows + kept * width, rows);
      std::copy_n(x.data() + ((sequence + 1) * length - fresh) * width, fresh * width, rows + (kept - fresh) * width);
    }
  }

  Array before;  // (B, taps - 1, D): the last tokens, 0 before the first
  std::unique_ptr<MixerState> mixer;
};

/// x -> mixer(x + conv(x)).
class ShortConv final : public Mixer {
 public:
  ShortConv(const Scope& scope, int64_t width, int64_t taps, std::unique_ptr<Mixer> mixer) : mixer_(std::move(mixer)) {
    check(taps >= 1, "short_conv: {} taps", taps);
    const double limit = 1 / std::sqrt(static_cast<double>(taps));
    kernel_ = (scope / "short_conv").param("kernel", {width, taps}, init::uniform(-limit, limit), {/*decay=*/false});
  }

  Var forward(const Var& x, const Context& context) const override {
    return mixer_->forward(convolved(x, context.segments), context);
  }

  std::unique_ptr<MixerState> make_state(int64_t batch) const override {
    return new_state<ShortConvState>(batch, kernel_.dim(1), kernel_.dim(0), mixer_->make_state(batch));
  }

  Var prefill(const Var& x, MixerState& state) const override {
    auto& own = prefill_state<ShortConvState>(state, "short_conv", x, kernel_.dim(0));
    Array sums = convolved(x, Segments::full(x.dim(0), x.dim(1))).value();
    add_before(own.before, sums);
    const Var y = mixer_->prefill(Var(sums), *own.mixer);
    own.advance(x.dim(0), x.dim(1));
    own.remember(x.value());  // a prefill that is refused leaves the state as it was
    return y;
  }

  Var step(const Var& x, MixerState& state) const override {
    auto& own = step_state<ShortConvState>(state, "short_conv", x, kernel_.dim(0));
    const int64_t batch = x.dim(0), width = x.dim(1), taps = kernel_.dim(1);
    Array y = x.value().clone();
    const real* const kernel = kernel_.value().data();
    for (int64_t sequence = 0; sequence < batch; ++sequence) {
      real* const sum = y.mutable_data() + sequence * width;
      for (int64_t k = 0; k < taps; ++k) {
        const real* const in = k + 1 < taps ? own.before.data() + (sequence * (taps - 1) + k) * width
                                            : x.value().data() + sequence * width;
        for (int64_t d = 0; d < width; ++d) sum[d] += kernel[d * taps + k] * in[d];
      }
    }
    const Var out = mixer_->step(Var(y), *own.mixer);
    own.advance(batch, 1);
    own.remember(x.value().reshape({batch, 1, width}));
    return out;
  }

  MixerCost cost(int64_t length) const override {
    MixerCost cost = mixer_->cost(length);
    const double products = 2.0 * static_cast<double>(kernel_.value().size());
    cost.mixing_flops += products;
    cost.decode_flops += products;
    cost.saved_elements += static_cast<double>(kernel_.dim(0));  // its sum with x, which the mixer's projections read
    return cost;
  }

  bool forward_only() const override { return mixer_->forward_only(); }

  std::vector<MixingWeights> mixing_weights(const Var& x, const Context& context) const override {
    return mixer_->mixing_weights(convolved(x, context.segments), context);
  }

  Array position_bias(int64_t longest) const override { return mixer_->position_bias(longest); }

 private:
  /// Adds what the first tokens of sums (B, T, D) see of the rows in front of them, (B, taps - 1, D).
  void add_before(const Array& before, Array& sums) const {
    const int64_t kept = before.dim(1), length = sums.dim(1), width = sums.dim(2);
    const real* const kernel = kernel_.value().data();
    for (int64_t sequence = 0; sequence < before.dim(0); ++sequence)
      for (int64_t t = 0; t < std::min(kept, length); ++t)
        for (int64_t k = t; k < kept; ++k) {  // row k in front meets tap k - t
          real* const sum = sums.mutable_data() + (sequence * length + t) * width;
          const real* const in = before.data() + (sequence * kept + k) * width;
          for (int64_t d = 0; d < width; ++d) sum[d] += kernel[d * (kept + 1) + k - t] * in[d];
        }
  }
  Var convolved(const Var& x, const Segments& segments) const {
    return x + depthwise_causal_conv(x, kernel_, segments);
  }

  std::unique_ptr<Mixer> mixer_;
  Var kernel_;
};

}  // namespace

std::unique_ptr<Mixer> make_short_conv(const Scope& scope, int64_t width, int64_t taps, std::unique_ptr<Mixer> mixer) {
  return std::make_unique<ShortConv>(scope, width, taps, std::move(mixer));
}

}  // namespace capstan::CAPSTAN_PRECISION
