// Which tokens may see each other. Made once per batch from Batch::segment_ids, and read by every op that mixes tokens:
// they loop over spans, so no kernel knows padding, packing or masks. tests/core/array/test_segments.cpp holds this;
// tests/models/test_packed_documents.cpp holds that a packed document gets what it gets alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/array/array.hpp"
#include "core/base/real.hpp"

namespace capstan {

/// Segment ids (B, T): 0 = padding, every other number one document. A key is visible when its segment is the query's
/// (and, when causal, not later); padding tokens neither see nor are seen. Every document is one contiguous
/// run of its row. A row may hold several documents, and positions restart with each of them.
class Segments {
 public:
  /// One document: tokens [begin, end) of row `row`.
  struct Span {
    int64_t row, begin, end;
    int64_t length() const { return end - begin; }
  };

  Segments() = default;
  /// Throws std::invalid_argument when the ids are not (B, T), are negative, or a document is not contiguous.
  explicit Segments(const Ids& ids);
  /// B rows of T tokens, each one document.
  static Segments full(int64_t batch, int64_t length);

  int64_t batch() const { return ids_.dim(0); }
  int64_t length() const { return ids_.dim(1); }
  const Ids& ids() const { return ids_; }
  /// Position of every token within its document, (B, T); 0 for padding.
  const Ids& positions() const { return positions_; }
  /// All documents, in the order of the rows and, within a row, of their tokens.
  const std::vector<Span>& spans() const { return spans_; }
  /// Tokens of the longest document; 0 without any.
  int64_t longest() const { return longest_; }
  /// Number of tokens that are not padding.
  int64_t valid() const { return valid_; }
  /// No padding anywhere?
  bool all_valid() const { return valid_ == ids_.size(); }
  bool is_valid(int64_t row, int64_t t) const { return ids_[row * length() + t] != 0; }

 private:
  Ids ids_{Shape{0, 0}};
  Ids positions_{Shape{0, 0}};
  std::vector<Span> spans_;
  int64_t longest_ = 0;
  int64_t valid_ = 0;
};

/// Positions first, first + 1, ... of T tokens of B sequences, (B, T).
Ids positions_from(int64_t first, int64_t batch, int64_t length);
/// The first `count` of `positions`, (count): those of the sequences that a decode step is about.
Ids first_positions(const std::vector<int64_t>& positions, int64_t count);

}  // namespace capstan
