// Which rows of a large table are in memory, and where: a look-up reads one word and a count. Used by PackedTable
// (core/autograd/var.hpp) and by the n-grams of linear classifiers (nn/layers/ngram_table).
#pragma once

#include <cstdint>
#include <vector>

namespace capstan {

/// A set of rows, and the place of each among them in ascending order.
class RowIndex {
 public:
  /// for_each(visit) calls visit(row) for each row of the set, in ascending order; all are below `rows`.
  template <class ForEach>
  RowIndex(int64_t rows, const ForEach& for_each) : groups_(static_cast<size_t>(rows / 64 + 1), Group{0, 0}) {
    for_each([this](int64_t row) { groups_[static_cast<size_t>(row >> 6)].kept |= uint64_t{1} << (row & 63); });
    for (Group& group : groups_) {
      group.before = count_;
      count_ += __builtin_popcountll(group.kept);
    }
  }

  int64_t count() const { return count_; }
  /// How many rows of the set precede this one; -1 for a row that is not in the set. `row` is below the `rows` of the
  /// constructor, which is not checked.
  int64_t place_of(int64_t row) const {
    const Group& group = groups_[static_cast<size_t>(row >> 6)];
    const uint64_t bit = uint64_t{1} << (row & 63);
    return (group.kept & bit) == 0 ? -1 : group.before + __builtin_popcountll(group.kept & (bit - 1));
  }
  /// Loads into the cache what place_of(row) will read.
  void prefetch(int64_t row) const { __builtin_prefetch(groups_.data() + (row >> 6)); }

 private:
  /// Which of 64 rows are in the set, and how many rows are before them.
  struct Group {
    uint64_t kept;
    int64_t before;
  };
  std::vector<Group> groups_;
  int64_t count_ = 0;
};

}  // namespace capstan
