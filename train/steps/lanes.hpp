// A batch in lanes: parts of fixed content, each computed by one thread, whose gradients are added up in a fixed order.
//
// A lane's gradient is a function of the weights, its examples, the seed and the step. Lanes are added along a binary
// tree over their indices. So no result depends on how many threads and processes there are or on which of them took a
// lane. And a step has no fork and join inside: threads meet when it ends. Another number of lanes or another tree
// gives other bits: tests/train/test_lanes.cpp, test_ranks.cpp and tests/run/test_portable_bits.cpp.
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

/// Lanes [begin, end) of a batch.
struct LaneRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool holds(const LaneRange& other) const { return begin <= other.begin && other.end <= end; }
};
inline bool operator==(const LaneRange& a, const LaneRange& b) { return a.begin == b.begin && a.end == b.end; }

/// The order in which the lanes of a batch are added, and which of them a rank computes: functions of their number
/// alone. A binary tree: node (i, 2k) = node (i, k) + node (i + k, k), where a node without a right child is its left
/// one.
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

  /// The nodes that are left when the lanes of a range are added as far as the tree allows, short of its root,
  /// ascending. They are O(log lanes).
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

/// How the gradients of a batch are computed.
struct PassOptions {
  int64_t lanes = 0;               // train.lanes; 0: lane_count() decides
  int64_t micro_batch_tokens = 0;  // a lane is cut into pieces of at most so many tokens (split_rows)
  uint64_t step = 0;               // for the random numbers of dropout
  bool fresh = false;  // the gradients of all parameters are 0: a batch of one lane needs no block of its own
};

/// The most lanes that lane_count() chooses by itself.
inline constexpr int64_t max_lanes = 8;

/// How many lanes a batch of this many rows and columns has: `setting`, but not more than rows. If it is 0, up to
/// max_lanes of at least 1,024 tokens (products of fewer rows are slower) or, in its place, the largest number above
/// half of that which divides the rows.
int64_t lane_count(int64_t rows, int64_t columns, int64_t setting);

/// Row at which a lane of a batch of `rows` rows begins.
inline int64_t lane_begin(int64_t rows, int64_t lanes, int64_t lane) { return rows * lane / lanes; }

/// Computes gradients in lanes; keeps the lanes' gradient blocks from step to step.
class Lanes {
 public:
  /// The sum of the lanes below a node of the tree.
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

  /// Forward and backward pass of a lane, on the calling thread's tape; gradients go where that thread's LaneGrads
  /// says.
  StepSums pass(const Batch& batch, const PassOptions& options) const;
  std::unique_ptr<GradBlock> take_block();
  void give_block(std::unique_ptr<GradBlock> block);
  void finish_lane(Climb& climb, Node node);

  const Task& task_;
  ParamStore& params_;
  std::mutex mutex_;                                // guards blocks_ and the waiting nodes
  std::vector<std::unique_ptr<GradBlock>> blocks_;  // unused, all gradients 0
};

}  // namespace capstan
