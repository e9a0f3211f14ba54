// A batch in lanes: parts of fixed content, each computed by one thread, whose gradients are added up in a fixed order.
//
// A lane's gradient is a function of the weights, its examples, the seed and the step. Lanes are added along a binary
// tree over their indices (train/steps/lane_tree.hpp). So no result depends on how many threads and processes there are
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
#include "train/steps/lane_tree.hpp"

namespace capstan {

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
