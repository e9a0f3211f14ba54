// The keys and values of past tokens, for decoding by attention.
#pragma once

#include "core/array/array.hpp"
#include "nn/systems/quadratic/kernels/decode.hpp"
#include "nn/systems/quadratic/op.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// How one query per sequence and head attends to the cache.
struct CacheQuery {
  AttentionKernel kernel = AttentionKernel::softmax;
  int64_t heads = 1;
  real scale = 1, output_scale = 1;
  const real* bias = nullptr;  // (H, count()), in the order of the tokens
};

/// Keys and values of the last tokens of B sequences that advance together; grows by doubling.
class KeyValueCache {
 public:
  /// key_width, value_width: elements per token, all heads together.
  KeyValueCache(int64_t batch, int64_t key_width, int64_t value_width)
      : batch_(batch), key_width_(key_width), value_width_(value_width) {}

  void clear() { count_ = 0; }
  /// As MixerState::select().
  void select(const std::vector<int64_t>& rows);
  int64_t batch() const { return batch_; }
  /// Tokens held of every sequence.
  int64_t count() const { return count_; }

  /// Adds `tokens` tokens to every sequence: token t of sequence b has its key at
  /// keys + (b tokens + t) key_stride, its value likewise.
  void append(const real* keys, int64_t key_stride, const real* values, int64_t value_stride, int64_t tokens);

  /// All tokens of one sequence, of their values only columns [begin, end): for a caller with one head.
  kernels::AttentionCache columns(int64_t row, int64_t begin, int64_t end) const {
    return {keys_.data() + row * capacity_ * key_width_,
            values_.data() + row * capacity_ * value_width_ + begin,
            key_width_,
            value_width_,
            count_,
            key_width_,
            end - begin};
  }

  /// attention() of the queries of the last `tokens` tokens held on all that they see, (B, tokens, H E). q: query t of
  /// sequence b at q + (b tokens + t) q_stride; bias: (H, 2N - 1) with N >= count(), or empty.
  Array attend_last(int64_t tokens, const AttentionOptions& options, const Array& bias, const real* q,
                    int64_t q_stride) const;

  /// y = the query's attention over all tokens held. q: row b at q + b q_stride, H Z elements; y: (B, H E).
  void attend(const CacheQuery& query, const real* q, int64_t q_stride, real* y) const;

 private:
  void reserve(int64_t tokens);

  int64_t batch_, key_width_, value_width_, count_ = 0, capacity_ = 0;
  Array keys_, values_;  // (B, capacity, width)
};

}  // namespace capstan::CAPSTAN_PRECISION
