#include "nn/systems/aft/mixer.hpp"

#include <algorithm>
#include <limits>

#include "core/array/select.hpp"
#include "core/base/error.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/machine/parallel.hpp"
#include "core/ops/math.hpp"
#include "core/ops/reduce.hpp"
#include "core/ops/shape.hpp"
#include "nn/mixer/prefix.hpp"
#include "nn/systems/aft/composed.hpp"
#include "nn/systems/aft/kernels/decode.hpp"
#include "nn/systems/aft/kernels/scan.hpp"
#include "nn/systems/aft/op.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

struct AftDecodeState final : MixerState {
  AftDecodeState(int64_t batch, int64_t width, int64_t keys, int64_t capacity_)
      : capacity(capacity_), maximum(Shape{batch, keys}), weight(Shape{batch, keys}), average(Shape{batch, width}) {
    if (capacity > 0) {
      key_ring = Array(Shape{batch, capacity, keys});
      value_ring = Array(Shape{batch, capacity, width});
    }
    AftDecodeState::reset();
  }

  void reset() override {
    position = 0;
    kernels::fill(maximum.mutable_data(), maximum.size(), std::numeric_limits<real>::lowest());
    kernels::fill(weight.mutable_data(), weight.size(), real{0});
    kernels::fill(average.mutable_data(), average.size(), real{0});
  }

  void select(const std::vector<int64_t>& rows) override {
    for (Array* const part : {&maximum, &weight, &average, &key_ring, &value_ring}) *part = select_rows(*part, rows);
  }
  int64_t batch() const { return maximum.dim(0); }
  int64_t elements(int64_t seen) const override {
    return 2 * maximum.dim(1) + average.dim(1) + std::min(seen, capacity) * (maximum.dim(1) + average.dim(1));
  }

  kernels::AftState running(int64_t row, int64_t key, int64_t channel) {
    return {maximum.mutable_data() + row * maximum.dim(1) + key, weight.mutable_data() + row * weight.dim(1) + key,
            average.mutable_data() + row * average.dim(1) + channel};
  }
  real* key_row(int64_t row, int64_t token) {
    return key_ring.mutable_data() + (row * capacity + token % capacity) * maximum.dim(1);
  }
  real* value_row(int64_t row, int64_t token) {
    return value_ring.mutable_data() + (row * capacity + token % capacity) * average.dim(1);
  }

  int64_t position = 0, capacity;
  Array maximum, weight, average;  // of the tokens that left the ring (of all, without a ring)
  Array key_ring, value_ring;      // (B, capacity, keys or D)
};

/// Throws std::invalid_argument for a state that some other kind of mixer made.
AftDecodeState& decode_state(MixerState& state, int64_t keys, int64_t width, int64_t capacity) {
  auto* const aft = dynamic_cast<AftDecodeState*>(&state);
  check(aft != nullptr && aft->maximum.dim(1) == keys && aft->average.dim(1) == width && aft->capacity == capacity,
        "aft: this state was made for another mixer");
  return *aft;
}

/// Groups of channels as the kernels want them: all at once with a key each, or one head after the other.
template <class Body>
void for_each_group(int64_t width, int64_t heads, const Body& body) {
  if (heads == 0) return body(kernels::AftGroup{width, false}, int64_t{0}, int64_t{0});
  for (int64_t head = 0; head < heads; ++head)
    body(kernels::AftGroup{width / heads, true}, head, head * (width / heads));
}

/// One of the four variants, of inner width I (D unless configured).  Parameters to_qkv.weight (I + K + I, D), query_bias, key_bias, value_bias, to_out;
/// position_u and position_v (max_length, rank) or position_bias (max_length, max_length); for aft-conv kernel,
/// kernel_gain and kernel_bias: w = gain (kernel - mean) / std + bias per head, gain and bias starting at 0,
/// so that it starts as aft-simple.
class Aft final : public Mixer {
 public:
  Aft(const Scope& scope, const MixerShape& shape, const AftSimpleConfig& config)
      : Aft(scope, shape, config, Bias::none, 0, 0) {}

  /// `window` 0: all pairs.
  Aft(const Scope& scope, const MixerShape& shape, const AftPositions& config, int64_t window)
      : Aft(scope, shape, config, config.position_bias == PositionBias::dense ? Bias::dense : Bias::factorised, window,
            0) {
    check(shape_.max_length > 0, "aft: a position bias needs max_length > 0");
    const auto param = [&](const char* name, int64_t columns) {
      return scope.param(name, {shape_.max_length, columns}, init::normal(config.position_stddev), {/*decay=*/false});
    };
    if (bias_ == Bias::dense) {
      position_bias_ = param("position_bias", shape_.max_length);
    } else {
      position_u_ = param("position_u", config.rank);
      position_v_ = param("position_v", config.rank);
    }
  }

  Aft(const Scope& scope, const MixerShape& shape, const AftConvConfig& config)
      : Aft(scope, shape, config, Bias::taps, config.window, config.heads) {
    const ParamOptions vector{/*decay=*/false};
    kernel_eps_ = config.kernel_eps;
    kernel_ = scope.param("kernel", {heads_, shape.causal ? window_ : 2 * window_ - 1}, init::normal(1), vector);
    kernel_gain_ = scope.param("kernel_gain", {heads_}, init::zeros(), vector);
    kernel_bias_ = scope.param("kernel_bias", {heads_}, init::zeros(), vector);
  }

  Var forward(const Var& x, const Context& context) const override {
    const Var qkv = project(x);
    if (!shape_.causal) return output(mix(qkv, context.segments, false));
    return output(
        mix_with_prefix(context, [&](const Segments& segments, bool causal) { return mix(qkv, segments, causal); }));
  }

  std::unique_ptr<MixerState> make_state(int64_t batch) const override {
    if (!shape_.causal) throw std::logic_error("aft: a bidirectional mixer does not decode");
    return std::make_unique<AftDecodeState>(batch, inner_, keys_, cached_tokens());
  }

  Var prefill(const Var& x, MixerState& mixer_state) const override {
    const int64_t width = inner_;
    AftDecodeState& state = decode_state(mixer_state, keys_, width, cached_tokens());
    check(x.rank() == 3 && x.dim(0) == state.batch() && x.dim(2) == shape_.width,
          "aft: prefill: x is {}, but must be ({}, T, {})", x.shape(), state.batch(), shape_.width);
    check(state.position == 0, "aft: prefill needs a fresh state; this one has seen {} tokens", state.position);
    const int64_t batch = x.dim(0), length = x.dim(1);
    if (length == 0) return x;
    const Var qkv = project(x);
    const Var y =
        output(mix(qkv, Segments::full(batch, length), !shape_.prefix));  // first: a refusal leaves the state alone
    const int64_t ring = std::min(length, state.capacity),
                  left = length - ring;  // `left` tokens are no longer in the ring
    parallel_for(batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const real* const first = qkv.value().data() + row * length * stride();
        for_each_group(width, heads_, [&](const kernels::AftGroup& group, int64_t key, int64_t channel) {
          kernels::aft_carry({first + channel, first + width + key, first + width + keys_ + channel, stride()}, left,
                             group, state.running(row, key, channel));
        });
        for (int64_t t = left; t < length; ++t) {
          std::copy_n(first + t * stride() + width, keys_, state.key_row(row, t));
          std::copy_n(first + t * stride() + width + keys_, width, state.value_row(row, t));
        }
      }
    });
    state.position = length;
    return y;
  }

  Var step(const Var& x, MixerState& mixer_state) const override {
    const int64_t width = inner_;
    AftDecodeState& state = decode_state(mixer_state, keys_, width, cached_tokens());
    const int64_t batch = state.batch(), t = state.position;
    check(x.shape() == Shape{batch, shape_.width}, "aft: step: x is {}, but must be ({}, {})", x.shape(), batch,
          shape_.width);
    const Array qkv = state.decode().linear(x.value(), qkv_weight_, packed_bias());
    Array y(Shape{batch, width});
    real* const y_data = y.mutable_data();
    const int64_t count = std::min(t + 1, state.capacity);
    const Array bias = state.capacity > 0 ? bias_row(t, count) : Array();
    for (int64_t row = 0; row < batch; ++row) {
      const real* const token = qkv.data() + row * stride();
      const real *const k = token + width, *const v = k + keys_;
      if (state.capacity == 0) {
        kernels::aft_scan({token, k, v, 0}, 1, width, state.running(row, 0, 0), y_data + row * width, 0, nullptr,
                          nullptr);
        continue;
      }
      real *const ring_k = state.key_row(row, t), *const ring_v = state.value_row(row, t);
      for_each_group(width, heads_, [&](const kernels::AftGroup& group, int64_t key, int64_t channel) {
        const kernels::AftState leaving = state.running(row, key, channel);
        if (t >= state.capacity) kernels::aft_carry({nullptr, ring_k + key, ring_v + channel, 0}, 1, group, leaving);
        std::copy_n(k + key, group.keys(), ring_k + key);
        std::copy_n(v + channel, group.channels, ring_v + channel);
        const kernels::AftCache cache{state.key_row(row, 0) + key, state.value_row(row, 0) + channel, keys_, width,
                                      state.capacity};
        kernels::aft_decode(cache, t, count, group, bias.data() + (heads_ > 0 ? key : 0) * count, leaving,
                            token + channel, y_data + row * width + channel);
      });
    }
    ++state.position;
    return Var(to_out_ ? to_out_->step(y, state.decode()) : y);
  }

  MixerCost cost(int64_t length) const override {
    const double width = static_cast<double>(inner_), keys = static_cast<double>(keys_),
                 t = static_cast<double>(length);
    double saved = 2 * width + keys + (to_out_ ? width : 0);                          // q|k|v, and what to_out reads
    if (bias_ == Bias::none) return {0, 0, saved + (shape_.causal ? 2 * width : 0)};  // the gates and R
    saved += width + keys;                                                            // R and the denominators
    const double reach = window_ == 0 ? t : std::min(t, static_cast<double>(shape_.causal ? window_ : 2 * window_ - 1));
    const double sources = window_ == 0 && shape_.causal ? reach / 2 : reach;
    const double cached = std::min(t, static_cast<double>(cached_tokens()));
    return {2 * sources * (width + keys), 2 * cached * (width + keys), saved};
  }

  Array position_bias(int64_t longest) const override {
    const int64_t length = shown_positions(longest);
    const Segments document = Segments::full(1, length);
    const Shape one_head{1, length, length};
    switch (bias_) {
      case Bias::none:
        return {};
      case Bias::factorised:
        return aft_factorised_bias(position_u_, position_v_, document, window_).value().reshape(one_head);
      case Bias::dense:
        return aft_dense_bias(position_bias_, document, window_).value().reshape(one_head);
      case Bias::taps:
        return aft_conv_bias(taps(), document, shape_.causal).value().reshape(Shape{heads_, length, length});
    }
    throw std::logic_error("aft: unknown position bias");
  }

 private:
  enum class Bias { none, factorised, dense, taps };

  Aft(const Scope& scope, const MixerShape& shape, const AftProjections& projections, Bias bias, int64_t window,
      int64_t heads)
      : shape_(shape),
        bias_(bias),
        inner_(projections.inner > 0 ? projections.inner : shape.width),
        window_(window),
        heads_(heads),
        keys_(heads > 0 ? heads : inner_) {
    check(inner_ % keys_ == 0, "aft: width {} is not a multiple of {} heads", inner_, keys_);
    check(inner_ == shape.width || projections.output_projection,
          "aft: an inner width of {} in a model of width {} needs the output projection", inner_, shape.width);
    const ParamOptions vector{/*decay=*/false}, gauge{/*decay=*/false, /*gauge=*/true};
    ParamOptions qkv;
    qkv.stacked = {inner_, keys_, inner_};
    qkv_weight_ = (scope / "to_qkv").param("weight", {stride(), shape.width}, init::lecun_normal(), qkv);
    if (projections.bias) {
      query_bias_ = scope.param("query_bias", {inner_}, init::zeros(), vector);
      value_bias_ = scope.param("value_bias", {inner_}, init::zeros(), vector);
    }
    if (projections.key_bias) key_bias_ = scope.param("key_bias", {keys_}, init::zeros(), gauge);
    if (projections.output_projection)
      to_out_ = std::make_unique<Linear>(scope / "to_out",
                                         LinearConfig{inner_, shape.width, projections.bias, shape.output_gain});
  }

  int64_t stride() const { return 2 * inner_ + keys_; }
  /// Of q|k|v; undefined where there is none.
  Var packed_bias() const {
    if (!query_bias_ && !key_bias_) return Var();
    const auto part = [](const Var& bias, int64_t size) { return bias ? bias : Var(Array::zeros(Shape{size})); };
    return concatenate({part(query_bias_, inner_), part(key_bias_, keys_), part(value_bias_, inner_)}, 0);
  }

  Var project(const Var& x) const { return linear(x, qkv_weight_, packed_bias()); }
  Var mix(const Var& qkv, const Segments& segments, bool causal) const {
    switch (bias_) {
      case Bias::none:
        return aft_simple(qkv, segments, causal);
      case Bias::factorised:
        return aft_factorised(qkv, position_u_, position_v_, segments, causal, window_);
      case Bias::dense:
        return aft_dense(qkv, position_bias_, segments, causal, window_);
      case Bias::taps:
        return aft_conv(qkv, taps(), segments, causal);
    }
    throw std::logic_error("aft: unknown position bias");
  }

  Var output(const Var& y) const { return to_out_ ? (*to_out_)(y) : y; }
  /// Positions that show the whole bias: what is outside a window is 0.
  int64_t shown_positions(int64_t longest) const {
    constexpr int64_t least = 32;  // a smaller picture shows no shape
    if (bias_ == Bias::taps) return std::min(longest, std::max(least, 3 * window_));
    const int64_t known = std::min(longest, shape_.max_length);
    return window_ == 0 ? known : std::min(known, std::max(least, 4 * window_));  // 0 outside the window
  }

  /// (heads, taps), reparametrised.
  Var taps() const {
    const Var centred = kernel_ - mean(kernel_, {1}, keep_dims);
    const Var deviation = sqrt(mean(square(centred), {1}, keep_dims) + kernel_eps_);
    const Var gain = reshape(kernel_gain_, {heads_, 1}), bias = reshape(kernel_bias_, {heads_, 1});
    return gain * centred / deviation + bias;
  }

  /// Tokens whose keys and values a decode state holds.
  int64_t cached_tokens() const {
    if (bias_ == Bias::none) return 0;
    if (bias_ == Bias::taps) return window_;
    return window_ == 0 ? shape_.max_length : std::min(window_, shape_.max_length);
  }

  /// w of target `t` against sources t, t - 1, ..., t - count + 1, for every head: (heads, count).
  Array bias_row(int64_t t, int64_t count) const {
    Array row(Shape{std::max<int64_t>(heads_, 1), count});
    real* const out = row.mutable_data();
    if (bias_ == Bias::taps) {
      const Array all = taps().value();
      for (int64_t head = 0; head < heads_; ++head)
        std::copy_n(all.data() + head * all.dim(1), count, out + head * count);
      return row;
    }
    const int64_t known = bias_ == Bias::dense ? position_bias_.dim(0) : position_u_.dim(0);
    check(t < known, "aft: token {} is past the {} positions of this mixer", t, known);
    for (int64_t lag = 0; lag < count; ++lag) {
      if (bias_ == Bias::dense) {
        out[lag] = position_bias_.value()[t * known + t - lag];
        continue;
      }
      const int64_t rank = position_u_.dim(1);
      const real *const u = position_u_.value().data() + t * rank, *const v =
                                                                       position_v_.value().data() + (t - lag) * rank;
      real w = 0;
#pragma omp simd reduction(+ : w)
      for (int64_t i = 0; i < rank; ++i) w += u[i] * v[i];
      out[lag] = w;
    }
    return row;
  }

  MixerShape shape_;
  Bias bias_;
  int64_t inner_, window_, heads_, keys_;  // heads_ 0: one key per channel
  double kernel_eps_ = 0;
  Var qkv_weight_, query_bias_, key_bias_, value_bias_;
  Var position_u_, position_v_, position_bias_, kernel_, kernel_gain_, kernel_bias_;
  std::unique_ptr<Linear> to_out_;
};

}  // namespace

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const AftSimpleConfig& config) {
  return std::make_unique<Aft>(scope, shape, config);
}
std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const AftFullConfig& config) {
  return std::make_unique<Aft>(scope, shape, config, /*window=*/0);
}
std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const AftLocalConfig& config) {
  return std::make_unique<Aft>(scope, shape, config, config.window);
}
std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const AftConvConfig& config) {
  return std::make_unique<Aft>(scope, shape, config);
}

}  // namespace capstan::CAPSTAN_PRECISION
