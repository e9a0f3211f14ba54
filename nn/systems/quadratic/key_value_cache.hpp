// The keys and values of past tokens, for decoding by attention: part of the decode states of attention and gau.
// tests/nn/systems/attention/test_mixer.cpp holds that it keeps what it holds while it grows.
#pragma once

#include <vector>

#include "core/array/array.hpp"
#include "nn/mixer/mixer_state.hpp"
#include "nn/systems/quadratic/kernels/decode.hpp"
#include "nn/systems/quadratic/kernels/tile.hpp"
#include "nn/systems/quadratic/op.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Keys and values of the tokens of B sequences, which their owner counts; grows by doubling.
class KeyValueCache {
 public:
  /// key_width, value_width: elements per token, all heads together.
  KeyValueCache(int64_t batch, int64_t key_width, int64_t value_width)
      : batch_(batch), key_width_(key_width), value_width_(value_width) {}

  /// As MixerState::select() and copy(), which copies `tokens` tokens.
  void select(const std::vector<int64_t>& rows);
  void copy(int64_t to, const KeyValueCache& from, int64_t row, int64_t tokens);

  /// Adds `tokens` tokens to each of the first `rows` sequences, which have positions[row]: token t of sequence b has
  /// its key at keys + (b tokens + t) key_stride, its value likewise.
  void append(const std::vector<int64_t>& positions, int64_t rows, int64_t tokens, const real* keys, int64_t key_stride,
              const real* values, int64_t value_stride);

  /// Of the first `count` tokens of one sequence the keys [key, key + keys) and the values [value, value + values).
  kernels::AttentionCache part(int64_t row, int64_t count, int64_t key, int64_t keys, int64_t value,
                               int64_t values) const {
    return {keys_.data() + row * capacity_ * key_width_ + key,
            values_.data() + row * capacity_ * value_width_ + value,
            key_width_,
            value_width_,
            count,
            keys,
            values};
  }

  /// attention() of the queries of tokens past, ..., past + tokens - 1 of all sequences on all that they see, (B,
  /// tokens, H E). q: query t of sequence b at q + (b tokens + t) q_stride; bias: (H, 2N - 1) with N >= past + tokens,
  /// or empty.
  Array attend_last(int64_t past, int64_t tokens, const AttentionOptions& options, const Array& bias, const real* q,
                    int64_t q_stride) const {
    return attention_continue({batch_, tokens, past, capacity_, q, q_stride, keys_, values_, bias}, options);
  }

 private:
  void reserve(int64_t tokens);

  int64_t batch_, key_width_, value_width_, capacity_ = 0;
  Array keys_, values_;  // (B, capacity, width)
};

/// The decode state of a mixer that keeps the keys and values of all tokens; a sequence's position is their number.
struct KeyValueState : MixerState {
  KeyValueState(int64_t batch, int64_t key_width_, int64_t value_width_)
      : MixerState(batch), key_width(key_width_), value_width(value_width_), cache(batch, key_width, value_width) {}

  std::vector<Array*> parts() override { return {}; }
  void select(const std::vector<int64_t>& rows) override {
    MixerState::select(rows);
    cache.select(rows);
  }
  void copy(int64_t to, MixerState& from, int64_t row) override {
    MixerState::copy(to, from, row);
    cache.copy(to, static_cast<KeyValueState&>(from).cache, row, position(to));
  }
  int64_t elements(int64_t seen) const override { return seen * (key_width + value_width); }

  int64_t key_width, value_width;
  KeyValueCache cache;
};

}  // namespace capstan::CAPSTAN_PRECISION
