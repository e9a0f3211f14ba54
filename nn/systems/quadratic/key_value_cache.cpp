// Grows, selects and copies the rows of cached keys and values. tests/nn/systems/attention/test_mixer.cpp.
#include "nn/systems/quadratic/key_value_cache.hpp"

#include <algorithm>

#include "core/array/selected_rows.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// (B, tokens, width) in an array with room for `capacity` tokens.
Array enlarged(const Array& tokens, int64_t batch, int64_t capacity, int64_t width) {
  Array larger(Shape{batch, capacity, width});
  for (int64_t row = 0; row < batch && !tokens.empty(); ++row)
    std::copy_n(tokens.data() + row * tokens.dim(1) * width, tokens.dim(1) * width,
                larger.mutable_data() + row * capacity * width);
  return larger;
}

}  // namespace

void KeyValueCache::reserve(int64_t tokens) {
  if (tokens <= capacity_) return;
  constexpr int64_t smallest = 16;
  const int64_t capacity = std::max({smallest, tokens, 2 * capacity_});
  Array keys = enlarged(keys_, batch_, capacity, key_width_);
  Array values = enlarged(values_, batch_, capacity, value_width_);
  // What changes the cache comes last: without memory for the larger one, it stays what it was.
  keys_ = std::move(keys);
  values_ = std::move(values);
  capacity_ = capacity;
}

void KeyValueCache::select(const std::vector<int64_t>& rows) {
  Array keys = select_rows(keys_, rows), values = select_rows(values_, rows);
  keys_ = std::move(keys);
  values_ = std::move(values);
  batch_ = static_cast<int64_t>(rows.size());
}

void KeyValueCache::copy(int64_t to, const KeyValueCache& from, int64_t row, int64_t tokens) {
  if (tokens == 0 || (&from == this && to == row)) return;
  reserve(tokens);
  std::copy_n(from.keys_.data() + row * from.capacity_ * key_width_, tokens * key_width_,
              keys_.mutable_data() + to * capacity_ * key_width_);
  std::copy_n(from.values_.data() + row * from.capacity_ * value_width_, tokens * value_width_,
              values_.mutable_data() + to * capacity_ * value_width_);
}

void KeyValueCache::append(const std::vector<int64_t>& positions, int64_t rows, int64_t tokens, const real* keys,
                           int64_t key_stride, const real* values, int64_t value_stride) {
  if (rows == 0) return;
  reserve(*std::max_element(positions.begin(), positions.begin() + rows) + tokens);
  real *const all_keys = keys_.mutable_data(), *const all_values = values_.mutable_data();
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t from = row * tokens + t, to = row * capacity_ + positions[static_cast<size_t>(row)] + t;
      std::copy_n(keys + from * key_stride, key_width_, all_keys + to * key_width_);
      std::copy_n(values + from * value_stride, value_width_, all_values + to * value_width_);
    }
  }
}

}  // namespace capstan::CAPSTAN_PRECISION
