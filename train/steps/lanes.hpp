// A batch in lanes: parts of fixed content, each computed by one thread, whose gradients are added up in a fixed order.
//
// A lane's gradient is a function of the weights, its examples, the seed and the step. Lanes are added along a binary
// tree over their indices. So no result depends on how many threads and processes there are
// or on which of them took a lane. And a step has no fork and join inside: threads meet when it ends.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/array/batch.hpp"
#include "core/autograd/tape.hpp"
#include "models/model.hpp"
#include "nn/params/param_store.hpp"

namespace capstan {

// Which lanes a rank computes, and the order in which their gradients are added: a function of their number alone.

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

/// Sums over the batches of one training step.
struct StepSums {
  double loss = 0;  // nats
  int64_t targets = 0;
  int64_t tokens = 0;  // without padding
  void add(const StepSums& other);
};

struct PassOptions {
  int64_t lanes = 0;               // 0: lane_count() decides
  int64_t micro_batch_tokens = 0;  // of split_rows; a lane is cut further
  uint64_t step = 0;               // of dropout
  TapeOptions tape = {};
  bool fresh = false;  // the gradients of all parameters are 0: a batch of one lane needs no block of its own
};

/// The most lanes that lane_count() chooses by itself.
inline constexpr int64_t most_lanes = 8;

/// How many lanes a batch of this many rows and columns has: `setting`, or if that is 0, up to most_lanes of at least
/// 1,024 tokens (products of fewer rows are slower);
/// never more than rows. Of up to 8 lanes, the largest number that divides the rows is taken if it is at least half.
int64_t lane_count(int64_t rows, int64_t columns, int64_t setting);

/// Row at which a lane of a batch of `rows` rows begins.
inline int64_t lane_begin(int64_t rows, int64_t lanes, int64_t lane) { return rows * lane / lanes; }

/// Computes gradients in lanes; keeps the lanes' gradient blocks from step to step.
class Lanes {
 public:
  /// The sum of some lanes.
  struct Node {
    LaneRange lanes;
    std::unique_ptr<GradBlock> grads;
    StepSums sums;
  };

  Lanes(const Task& task, ParamStore& params) : task_(task), params_(params) {}

  /// Adds the gradients of the batch's summed loss to those of the parameters, and its sums to `sums`. A batch of one
  /// lane runs as it is, its operations cut into pieces that all threads share out. Throws what the first lane that
  /// failed has thrown, such as std::domain_error where the tape checks for values that are not finite; the gradients
  /// are then undefined.
  void add_gradients(const Batch& batch, const PassOptions& options, StepSums& sums);

  /// The lanes of `range`, as the nodes of the tree that LaneTree::nodes_of() names. `rows` are the rows of these
  /// lanes; the batch has `batch_rows`. Throws as add_gradients() does.
  std::vector<Node> compute(const Batch& rows, int64_t batch_rows, const LaneTree& tree, const LaneRange& range,
                            const PassOptions& options);
  /// Takes back the gradient blocks, which must be 0.
  void give_back(std::vector<Node> nodes);

 private:
  struct Climb;

  StepSums pass(const Batch& batch, const PassOptions& options) const;
  std::unique_ptr<GradBlock> take_block();
  void give_block(std::unique_ptr<GradBlock> block);
  void finish_lane(Climb& climb, Node node);

  const Task& task_;
  ParamStore& params_;
  std::mutex mutex_;                                // guards what follows and the waiting nodes
  std::vector<std::unique_ptr<GradBlock>> blocks_;  // unused, all gradients 0
};

}  // namespace capstan
