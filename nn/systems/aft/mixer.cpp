// The module of the four AFT variants: parameters, forward pass by the ops of op.hpp, and decoding. Names and shapes of
// parameters are in saved runs. tests/nn/systems/aft/test_decode.cpp holds decoding to the forward pass.
#include "nn/systems/aft/mixer.hpp"

#include <algorithm>
#include <limits>

#include "core/base/error.hpp"
#include "core/kernels/activation.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/machine/parallel.hpp"
#include "core/ops/ops.hpp"
#include "nn/layers/layers.hpp"
#include "nn/mixer/decoding_mixer.hpp"
#include "nn/mixer/prefixes.hpp"
#include "nn/systems/aft/composed.hpp"
#include "nn/systems/aft/kernels/decode.hpp"
#include "nn/systems/aft/kernels/scan.hpp"
#include "nn/systems/aft/kernels/tile.hpp"
#include "nn/systems/aft/op.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// What AFT remembers of each sequence: a running state and, with a position bias, a ring of the last keys and values.
struct AftDecodeState final : MixerState {
  AftDecodeState(int64_t batch, int64_t width, int64_t keys, int64_t capacity_)
      : MixerState(batch),
        capacity(capacity_),
        running{Array(Shape{batch, keys}), Array(Shape{batch, keys}), Array(Shape{batch, width})} {
    if (capacity > 0) {
      key_ring = Array(Shape{batch, capacity, keys});
      value_ring = Array(Shape{batch, capacity, width});
    }
    AftDecodeState::reset();
  }

  void reset() override {
    MixerState::reset();
    kernels::fill(running.maximum.mutable_data(), running.maximum.size(), std::numeric_limits<real>::lowest());
  }

  std::vector<Array*> parts() override {
    return {&running.maximum, &running.weight, &running.average, &key_ring, &value_ring};
  }
  int64_t keys() const { return running.maximum.dim(1); }
  int64_t width() const { return running.average.dim(1); }
  int64_t elements(int64_t seen) const override {
    return 2 * keys() + width() + std::min(seen, capacity) * (keys() + width());
  }

  kernels::AftState running_at(int64_t row, int64_t key, int64_t channel) {
    return {running.maximum.mutable_data() + row * keys() + key, running.weight.mutable_data() + row * keys() + key,
            running.average.mutable_data() + row * width() + channel};
  }
  real* key_row(int64_t row, int64_t token) {
    return key_ring.mutable_data() + (row * capacity + token % capacity) * keys();
  }
  real* value_row(int64_t row, int64_t token) {
    return value_ring.mutable_data() + (row * capacity + token % capacity) * width();
  }

  /// q|k|v of the cached tokens, whose queries are not set, followed by the rows of qkv (B, T, ...).
  Array with_cached(const Array& qkv) {
    const int64_t position = positions().front(), before = std::min(position, capacity);
    const int64_t length = qkv.dim(1), stride = qkv.dim(2);
    if (before == 0) return qkv;
    Array rows(Shape{batch(), before + length, stride});
    for (int64_t row = 0; row < batch(); ++row) {
      real* to = rows.mutable_data() + row * (before + length) * stride;
      for (int64_t t = position - before; t < position; ++t, to += stride) {
        std::copy_n(key_row(row, t), keys(), to + width());
        std::copy_n(value_row(row, t), width(), to + width() + keys());
      }
      std::copy_n(qkv.data() + row * length * stride, length * stride, to);
    }
    return rows;
  }

  int64_t capacity;
  AftRunning running;          // state of all tokens older than the ring's
  Array key_ring, value_ring;  // (B, capacity, keys or D)
};

/// Calls body(group, first key, first channel) for each group of the kernels: all channels at once if each has a key,
/// else one head after the other.
template <class Body>
void for_each_group(int64_t width, int64_t heads, const Body& body) {
  if (heads == 0) return body(kernels::AftGroup{width, false}, int64_t{0}, int64_t{0});
  for (int64_t head = 0; head < heads; ++head)
    body(kernels::AftGroup{width / heads, true}, head, head * (width / heads));
}

/// AFT-simple, -local, -full or -conv, of inner width I (D unless configured) and K keys.  Parameters to_qkv.weight
/// (I + K + I, D), query_bias, value_bias, to_out; position_u and position_v (max_length, rank) or
/// position_bias (max_length, max_length); for aft-conv kernel, kernel_gain and kernel_bias: w = gain (kernel - mean) /
/// std + bias per head. Gain and bias begin at 0, so aft-conv begins as aft-simple.
class Aft final : public DecodingMixer<AftDecodeState> {
 public:
  Aft(const Scope& scope, const MixerShape& shape, const AftSimpleConfig& config)
      : Aft(scope, shape, config, Bias::none, 0, 0) {}

  /// AFT-full, with `window` 0, or AFT-local.
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
    kernel_ = scope.param("kernel", {heads_, shape.causal ? window_ : 2 * window_ - 1}, init::normal(1), vector);
    kernel_gain_ = scope.param("kernel_gain", {heads_}, init::zeros(), vector);
    kernel_bias_ = scope.param("kernel_bias", {heads_}, init::zeros(), vector);
  }

  Var forward(const Var& x, const Context& context) const override {
    const Var qkv = project(x);
    return output(mix_with_prefix(context, shape_.causal,
                                  [&](const Segments& segments, bool causal) { return mix(qkv, segments, causal); }));
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

  MixerCost cost(int64_t length) const override {
    const double width = static_cast<double>(inner_), keys = static_cast<double>(keys_),
                 t = static_cast<double>(length);
    double saved = 2 * width + keys + (to_out_ ? width : 0);  // q|k|v, and what to_out reads
    if (bias_ == Bias::none) return {0, 0, saved};
    saved += width + keys;  // R and the denominators
    const double reach = window_ == 0 ? t : std::min(t, static_cast<double>(shape_.causal ? window_ : 2 * window_ - 1));
    const double sources = window_ == 0 && shape_.causal ? reach / 2 : reach;
    const double cached = std::min(t, static_cast<double>(cached_tokens()));
    return {2 * sources * (width + keys), 2 * cached * (width + keys), saved};
  }

 private:
  enum class Bias { none, factorised, dense, taps };

  Aft(const Scope& scope, const MixerShape& shape, const AftProjections& projections, Bias bias, int64_t window,
      int64_t heads)
      : DecodingMixer("aft", shape),
        bias_(bias),
        inner_(projections.inner > 0 ? projections.inner : shape.width),
        window_(window),
        heads_(heads),
        keys_(heads > 0 ? heads : inner_) {
    check(inner_ % keys_ == 0, "aft: width {} is not a multiple of {} heads", inner_, keys_);
    check(inner_ == shape.width || projections.output_projection,
          "aft: an inner width of {} in a model of width {} needs the output projection", inner_, shape.width);
    const ParamOptions vector{/*decay=*/false};
    ParamOptions qkv;
    qkv.stacked = {inner_, keys_, inner_};
    qkv_weight_ = (scope / "to_qkv").param("weight", {stride(), shape.width}, init::lecun_normal(), qkv);
    if (projections.bias) {
      query_bias_ = scope.param("query_bias", {inner_}, init::zeros(), vector);
      value_bias_ = scope.param("value_bias", {inner_}, init::zeros(), vector);
    }
    if (projections.output_projection)
      to_out_ = std::make_unique<Linear>(scope / "to_out",
                                         LinearConfig{inner_, shape.width, projections.bias, shape.output_gain});
  }

  /// The biases of queries, keys and values in one vector; undefined where there are none.
  Var packed_bias() const {
    if (!query_bias_) return Var();
    return concatenate({query_bias_, Var(Array::zeros(Shape{keys_})), value_bias_}, 0);
  }

  /// The taps of aft-conv, (heads, taps): gain (kernel - mean) / std + bias per head.
  Var taps() const {
    constexpr double eps = 1e-5;  // taps that are equal become 0, not 0 / 0
    const Var centred = kernel_ - mean(kernel_, {1}, keep_dims);
    const Var deviation = sqrt(mean(square(centred), {1}, keep_dims) + eps);
    const Var gain = reshape(kernel_gain_, {heads_, 1}), bias = reshape(kernel_bias_, {heads_, 1});
    return gain * centred / deviation + bias;
  }

  Var mix(const Var& qkv, const Segments& segments, bool causal, const AftPast& past = {}) const {
    const AftOptions options{0, past};
    switch (bias_) {
      case Bias::none:
        return aft_simple(qkv, segments, causal);
      case Bias::factorised:
        return aft_factorised(qkv, position_u_, position_v_, segments, causal, window_, options);
      case Bias::dense:
        return aft_dense(qkv, position_bias_, segments, causal, window_, options);
      case Bias::taps:
        return aft_conv(qkv, taps(), segments, causal, options);
    }
    throw std::logic_error("aft: unknown position bias");
  }

  /// How many positions position_bias() shows, at most `longest`: enough for its shape, since it is 0 outside a window.
  int64_t shown_positions(int64_t longest) const {
    constexpr int64_t least = 32;  // positions; with fewer, a picture shows no shape
    if (bias_ == Bias::taps) return std::min(longest, std::max(least, 3 * window_));
    const int64_t known = std::min(longest, shape_.max_length);
    return window_ == 0 ? known : std::min(known, std::max(least, 4 * window_));  // 0 outside the window
  }

  /// Tokens whose keys and values a decode state holds.
  int64_t cached_tokens() const {
    if (bias_ == Bias::none) return 0;
    if (bias_ == Bias::taps) return window_;
    return window_ == 0 ? shape_.max_length : std::min(window_, shape_.max_length);
  }

  std::unique_ptr<MixerState> fresh_state(int64_t batch) const override {
    return new_state<AftDecodeState>(batch, inner_, keys_, cached_tokens());
  }

  Var read(const Var& x, AftDecodeState& state) const override {
    const int64_t width = inner_;
    const int64_t batch = x.dim(0), length = x.dim(1);
    const int64_t position = state.position(0), end = position + length;
    const bool prefix = shape_.prefix && position == 0;
    const Var qkv = project(x);
    if (bias_ == Bias::none && !prefix) {
      AftRunning running{state.running.maximum.clone(), state.running.weight.clone(), state.running.average.clone()};
      Var y = output(Var(aft_simple_continue(qkv.value(), running)));
      state.running = std::move(running);
      state.advance(batch, length);
      return y;
    }
    const int64_t before = std::min(position, state.capacity), first = position - before;  // the token of row 0
    const Array rows = state.with_cached(qkv.value());
    const Var mixed = mix(Var(rows), Segments::full(batch, before + length), !prefix, {before, first, &state.running});
    const Var y = output(before > 0 ? slice(mixed, 1, before, before + length) : mixed);
    // The state changes only now, after all that may throw. Tokens before `left` go from the ring to `running`.
    const int64_t left = std::max(first, end - state.capacity);
    parallel_each(batch, 1, [&](int64_t row) {
      const real* const from = rows.data() + row * (before + length) * stride();
      for_each_group(width, heads_, [&](const kernels::AftGroup& group, int64_t key, int64_t channel) {
        kernels::aft_carry({from + channel, from + width + key, from + width + keys_ + channel, stride()}, left - first,
                           group, state.running_at(row, key, channel));
      });
      for (int64_t t = std::max(left, position); t < end; ++t) {
        std::copy_n(from + (t - first) * stride() + width, keys_, state.key_row(row, t));
        std::copy_n(from + (t - first) * stride() + width + keys_, width, state.value_row(row, t));
      }
    });
    state.advance(batch, length);
    return y;
  }

  /// w of target `t` against sources t, t - 1, ..., t - count + 1, for every head: (heads, count).
  Array bias_row(int64_t t, int64_t count) const {
    Array row(Shape{std::max<int64_t>(heads_, 1), count});
    real* const out = row.mutable_data();
    if (bias_ == Bias::taps) {
      const Array values = taps().value();
      for (int64_t head = 0; head < heads_; ++head)
        std::copy_n(values.data() + head * values.dim(1), count, out + head * count);
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
      out[lag] = kernels::dot(u, v, rank);
    }
    return row;
  }

  Var next(const Var& x, AftDecodeState& state) const override {
    const int64_t width = inner_, rows = x.dim(0);
    const Array qkv = state.decode().linear(x.value(), qkv_weight_, packed_bias());
    Array y(Shape{rows, width});
    real* const y_data = y.mutable_data();
    std::vector<Array> biases;  // bias_row() of each sequence; neighbours at the same position share one
    for (int64_t row = 0; row < rows && state.capacity > 0; ++row) {
      const int64_t t = state.position(row);
      biases.push_back(row > 0 && t == state.position(row - 1) ? biases.back()
                                                               : bias_row(t, std::min(t + 1, state.capacity)));
    }
    const auto step_row = [&](int64_t row) {
      const real* const token = qkv.data() + row * stride();
      const real *const k = token + width, *const v = k + keys_;
      const int64_t t = state.position(row), count = std::min(t + 1, state.capacity);
      if (state.capacity == 0)
        return kernels::aft_scan({token, k, v, 0}, 1, width, state.running_at(row, 0, 0), y_data + row * width, 0);
      real *const ring_k = state.key_row(row, t), *const ring_v = state.value_row(row, t);
      const real* const bias = biases[static_cast<size_t>(row)].data();
      for_each_group(width, heads_, [&](const kernels::AftGroup& group, int64_t key, int64_t channel) {
        const kernels::AftState leaving = state.running_at(row, key, channel);
        // The ring is full: its oldest token moves to the running state.
        if (t >= state.capacity) kernels::aft_carry({nullptr, ring_k + key, ring_v + channel, 0}, 1, group, leaving);
        std::copy_n(k + key, group.keys(), ring_k + key);
        std::copy_n(v + channel, group.channels, ring_v + channel);
        const kernels::AftCache cache{state.key_row(row, 0) + key, state.value_row(row, 0) + channel, keys_, width,
                                      state.capacity};
        kernels::aft_decode(cache, t, count, group, bias + (heads_ > 0 ? key : 0) * count, leaving, token + channel,
                            y_data + row * width + channel);
      });
    };
    constexpr int64_t serial_work = 1 << 14;  // exponentials; for fewer a second thread costs more than it saves
    parallel_each(rows, 1 + serial_work / (width * (1 + state.capacity)), step_row);
    state.advance(rows, 1);
    return Var(to_out_ ? to_out_->step(y, state.decode()) : y);
  }

  int64_t stride() const { return 2 * inner_ + keys_; }
  Var project(const Var& x) const { return linear(x, qkv_weight_, packed_bias()); }
  Var output(const Var& y) const { return to_out_ ? (*to_out_)(y) : y; }

  Bias bias_;
  int64_t inner_, window_, heads_, keys_;  // heads_ 0: one key per channel
  Var qkv_weight_, query_bias_, value_bias_;
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
