// Makes the spans of Segments and the positions within each document from ids, and refuses a document that is not
// contiguous in its row. tests/core/array/test_segments.cpp.
#include "core/array/segments.hpp"

#include <algorithm>
#include <set>

#include "core/base/error.hpp"

namespace capstan {

Segments::Segments(const Ids& ids) : ids_(ids), positions_(ids.shape()) {
  check(ids.rank() == 2, "segments: ids must be (B, T), got {}", ids.shape());
  int32_t* const positions = positions_.mutable_data();
  for (int64_t row = 0; row < batch(); ++row) {
    const int32_t* const id = ids_.data() + row * length();
    std::set<int32_t> documents;
    for (int64_t begin = 0, end; begin < length(); begin = end) {
      check(id[begin] >= 0, "segments: id {} at row {}, token {} is negative", id[begin], row, begin);
      end = begin + 1;
      while (end < length() && id[end] == id[begin]) ++end;
      const bool padding = id[begin] == 0;
      for (int64_t t = begin; t < end; ++t)
        positions[row * length() + t] = padding ? 0 : static_cast<int32_t>(t - begin);
      if (padding) continue;
      check(documents.insert(id[begin]).second,
            "segments: document {} of row {} is not contiguous: it starts again at token {}", id[begin], row, begin);
      spans_.push_back({row, begin, end});
      longest_ = std::max(longest_, end - begin);
      valid_ += end - begin;
    }
  }
}

Segments Segments::full(int64_t batch, int64_t length) { return Segments(Ids(Shape{batch, length}, 1)); }

Ids positions_from(int64_t first, int64_t batch, int64_t length) {
  Ids positions(Shape{batch, length});
  for (int64_t i = 0; i < positions.size(); ++i) positions.mutable_data()[i] = static_cast<int32_t>(first + i % length);
  return positions;
}

Ids first_positions(const std::vector<int64_t>& positions, int64_t count) {
  Ids first(Shape{count});
  for (int64_t i = 0; i < count; ++i) first.mutable_data()[i] = static_cast<int32_t>(positions[static_cast<size_t>(i)]);
  return first;
}

}  // namespace capstan
