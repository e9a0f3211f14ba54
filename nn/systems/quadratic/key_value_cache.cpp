#include "nn/systems/quadratic/key_value_cache.hpp"

#include <algorithm>

#include "core/array/select.hpp"
#include "core/machine/parallel.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// Multiply-adds below which a second thread costs more than it saves.
constexpr int64_t serial_work = 1 << 16;

/// The first `count` tokens of every sequence of (B, capacity, width), in an array with room for `capacity`.
Array enlarged(const Array& tokens, int64_t batch, int64_t count, int64_t capacity, int64_t width) {
  Array larger(Shape{batch, capacity, width});
  if (count == 0) return larger;
  for (int64_t row = 0; row < batch; ++row)
    std::copy_n(tokens.data() + row * tokens.dim(1) * width, count * width,
                larger.mutable_data() + row * capacity * width);
  return larger;
}

}  // namespace

void KeyValueCache::reserve(int64_t tokens) {
  if (tokens <= capacity_) return;
  constexpr int64_t smallest = 16;
  const int64_t capacity = std::max({smallest, tokens, 2 * capacity_});
  keys_ = enlarged(keys_, batch_, count_, capacity, key_width_);
  values_ = enlarged(values_, batch_, count_, capacity, value_width_);
  capacity_ = capacity;
}

void KeyValueCache::select(const std::vector<int64_t>& rows) {
  keys_ = select_rows(keys_, rows);
  values_ = select_rows(values_, rows);
  batch_ = static_cast<int64_t>(rows.size());
}

void KeyValueCache::append(const real* keys, int64_t key_stride, const real* values, int64_t value_stride,
                           int64_t tokens) {
  reserve(count_ + tokens);
  real *const all_keys = keys_.mutable_data(), *const all_values = values_.mutable_data();
  for (int64_t row = 0; row < batch_; ++row) {
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t from = row * tokens + t, to = row * capacity_ + count_ + t;
      std::copy_n(keys + from * key_stride, key_width_, all_keys + to * key_width_);
      std::copy_n(values + from * value_stride, value_width_, all_values + to * value_width_);
    }
  }
  count_ += tokens;
}

Array KeyValueCache::attend_last(int64_t tokens, const AttentionOptions& options, const Array& bias, const real* q,
                                 int64_t q_stride) const {
  return attention_continue({batch_, tokens, count_ - tokens, capacity_, q, q_stride, keys_, values_, bias}, options);
}

void KeyValueCache::attend(const CacheQuery& query, const real* q, int64_t q_stride, real* y) const {
  const int64_t heads = query.heads, head_keys = key_width_ / heads, head_values = value_width_ / heads;
  const auto one = [&](int64_t unit) {
    const int64_t row = unit / heads, head = unit % heads, first = row * capacity_;
    const kernels::AttentionCache cache{keys_.data() + first * key_width_ + head * head_keys,
                                        values_.data() + first * value_width_ + head * head_values,
                                        key_width_,
                                        value_width_,
                                        count_,
                                        head_keys,
                                        head_values};
    kernels::attention_decode(cache, query.kernel, query.scale,
                              query.bias != nullptr ? query.bias + head * count_ : nullptr, query.output_scale,
                              q + row * q_stride + head * head_keys, y + row * value_width_ + head * head_values);
  };
  const int64_t units = batch_ * heads;
  if (units * count_ * (head_keys + head_values) < serial_work)
    for (int64_t unit = 0; unit < units; ++unit) one(unit);
  else
    parallel_units(units, one);
}

}  // namespace capstan::CAPSTAN_PRECISION
