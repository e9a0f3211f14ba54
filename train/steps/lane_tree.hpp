// Which lanes a rank computes, and the order in which their gradients are added: a function of their number alone.
#pragma once

#include <cstdint>
#include <vector>

namespace capstan {

/// Lanes [begin, end) of a batch.
struct LaneRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool holds(const LaneRange& other) const { return begin <= other.begin && other.end <= end; }
};
inline bool operator==(const LaneRange& a, const LaneRange& b) { return a.begin == b.begin && a.end == b.end; }

/// A binary tree: node (i, 2k) = node (i, k) + node (i + k, k), where a node without a right child is its left one.
class LaneTree {
 public:
  explicit LaneTree(int64_t lanes) : lanes_(lanes) {}
  int64_t lanes() const { return lanes_; }

  /// The lanes of one of `ranks` ranks: contiguous, as many for each as possible.
  LaneRange lanes_of(int64_t rank, int64_t ranks) const { return {lanes_ * rank / ranks, lanes_ * (rank + 1) / ranks}; }
  /// The lanes below the node of `width` (a power of two) that begins at `first`.
  LaneRange node(int64_t first, int64_t width) const {
    return {first, first + width < lanes_ ? first + width : lanes_};
  }

  /// The nodes that are left when everything within the range is added up that is at most half of the tree, ascending.
  /// They are O(log lanes).
  std::vector<LaneRange> nodes_of(const LaneRange& range) const;

  /// Adds up ascending nodes that together are all lanes: add(left, right) is called with their indices, and `left` is
  /// then the sum of both. The sum of all is in the first.
  template <class Add>
  void finish(const std::vector<LaneRange>& nodes, const Add& add) const {
    int64_t whole = 1;
    while (whole < lanes_) whole *= 2;
    size_t next = 0;
    sum(nodes, next, 0, whole, add);
  }

 private:
  template <class Add>
  size_t sum(const std::vector<LaneRange>& nodes, size_t& next, int64_t first, int64_t width, const Add& add) const {
    if (nodes[next] == node(first, width)) return next++;
    const size_t left = sum(nodes, next, first, width / 2, add);
    if (first + width / 2 >= lanes_) return left;
    const size_t right = sum(nodes, next, first + width / 2, width / 2, add);
    add(left, right);
    return left;
  }

  int64_t lanes_;
};

}  // namespace capstan
