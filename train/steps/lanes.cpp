// A thread that has computed a lane adds it to its sibling if the sibling is done, and goes on up the tree; otherwise
// it leaves the lane there (finish_lane). So no thread waits for another, and the order of the sums is that of the
// tree. tests/train/test_lanes.cpp.
#include "train/steps/lanes.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "core/machine/parallel.hpp"
#include "core/machine/profile.hpp"
#include "data/batches/batcher.hpp"

namespace capstan {

std::vector<LaneRange> LaneTree::nodes_of(const LaneRange& range) const {
  std::vector<LaneRange> nodes;
  for (int64_t first = range.begin; first < range.end; first = nodes.back().end) {
    int64_t width = 1;
    while (2 * width < lanes_ && first % (2 * width) == 0 && range.holds(node(first, 2 * width))) width *= 2;
    nodes.push_back(node(first, width));
  }
  return nodes;
}

namespace {

constexpr int64_t min_tokens = 1024;

}  // namespace

void StepSums::add(const StepSums& other) {
  loss += other.loss;
  targets += other.targets;
  tokens += other.tokens;
}

int64_t lane_count(int64_t rows, int64_t columns, int64_t setting) {
  if (setting > 0) return std::max<int64_t>(1, std::min(setting, rows));
  // A batch of this shape exists, so the product does not overflow.
  const int64_t wanted =
      std::clamp<int64_t>(rows * columns / min_tokens, 1, std::min(max_lanes, std::max<int64_t>(rows, 1)));
  for (int64_t count = wanted; 2 * count > wanted; --count)
    if (rows % count == 0) return count;
  return wanted;
}

/// The lanes of one call of compute(), and the nodes that wait for their sibling.
struct Lanes::Climb {
  const LaneTree& tree;
  LaneRange range;
  std::vector<Node> waiting = std::vector<Node>(static_cast<size_t>(range.size()));  // by their first lane; empty: none
  Node& at(int64_t first) { return waiting[static_cast<size_t>(first - range.begin)]; }
};

StepSums Lanes::pass(const Batch& batch, const PassOptions& options) const {
  StepSums sums;
  for (const Batch& piece : split_rows(batch, options.micro_batch_tokens)) {
    TapeScope tape;
    const Context context{Segments(piece.segment_ids), true, options.step, piece.examples};
    const TaskLoss loss = task_.loss(piece, context);
    sums.add({static_cast<double>(loss.sum.value().item()), loss.targets, context.segments.valid()});
    tape.backward(loss.sum);
  }
  return sums;
}

std::unique_ptr<GradBlock> Lanes::take_block() {
  {
    const std::lock_guard lock(mutex_);
    if (!blocks_.empty()) {
      std::unique_ptr<GradBlock> block = std::move(blocks_.back());
      blocks_.pop_back();
      return block;
    }
  }
  return std::make_unique<GradBlock>(params_.dense_size(), params_.grad_block().tables().size());
}

void Lanes::give_block(std::unique_ptr<GradBlock> block) {
  const std::lock_guard lock(mutex_);
  blocks_.push_back(std::move(block));
}

/// Climbs from the lane's leaf for as long as the sibling is done. The last node that a lane's thread adds is half the
/// tree: the two halves are left to all threads together.
void Lanes::finish_lane(Climb& climb, Node node) {
  int64_t first = node.lanes.begin;
  const int64_t lanes = climb.tree.lanes();
  for (int64_t width = 1; 2 * width < lanes; width *= 2) {
    const bool right = (first & width) != 0;
    const int64_t left_first = right ? first - width : first, sibling = first ^ width;
    if (sibling >= lanes) continue;  // a node without a right child is its left one
    if (!climb.range.holds(climb.tree.node(left_first, 2 * width))) break;
    Node other;
    {
      const std::lock_guard lock(mutex_);
      if (!(climb.at(sibling).lanes == climb.tree.node(sibling, width))) {
        climb.at(first) = std::move(node);
        return;
      }
      other = std::exchange(climb.at(sibling), {});
    }
    if (right) std::swap(node, other);
    const ProfileSpan span("sum of lanes", Pass::none, 4 * params_.dense_size() * static_cast<int64_t>(sizeof(real)));
    node.grads->add(*other.grads);
    node.sums.add(other.sums);
    node.lanes.end = other.lanes.end;
    give_block(std::move(other.grads));
    first = left_first;
  }
  const std::lock_guard lock(mutex_);
  climb.at(first) = std::move(node);
}

std::vector<Lanes::Node> Lanes::compute(const Batch& rows, int64_t batch_rows, const LaneTree& tree,
                                        const LaneRange& range, const PassOptions& options) {
  const int64_t first_row = lane_begin(batch_rows, tree.lanes(), range.begin);
  Climb climb{tree, range};
  std::vector<std::exception_ptr> errors(static_cast<size_t>(range.size()));
  std::optional<ProfiledLanes> profiles(range.size());
  const auto compute_lane = [&](int64_t index) {
    const ProfiledLane profiled(*profiles, index);
    const int64_t lane = range.begin + index;
    Node node{{lane, lane + 1}, take_block(), {}};
    const LaneGrads mine(params_.grad_block(), *node.grads);
    node.sums = pass(rows_of(rows, lane_begin(batch_rows, tree.lanes(), lane) - first_row,
                             lane_begin(batch_rows, tree.lanes(), lane + 1) - first_row),
                     options);
    finish_lane(climb, std::move(node));
  };
  if (tree.lanes() == 1 && range.size() == 1) {  // the operations of a single lane run on all threads
    compute_lane(0);
  } else {
    parallel_units(range.size(), [&](int64_t index) {
      try {
        const OneThread alone;
        compute_lane(index);
      } catch (...) {
        errors[static_cast<size_t>(index)] = std::current_exception();
      }
    });
  }
  profiles.reset();
  for (const std::exception_ptr& error : errors)
    if (error != nullptr) std::rethrow_exception(error);
  std::vector<Node> nodes;
  for (const LaneRange& node : tree.nodes_of(range)) nodes.push_back(std::move(climb.at(node.begin)));
  return nodes;
}

void Lanes::give_back(std::vector<Node> nodes) {
  for (Node& node : nodes) give_block(std::move(node.grads));
}

void Lanes::add_gradients(const Batch& batch, const PassOptions& options, StepSums& sums) {
  const int64_t rows = batch.tokens.dim(0);
  const LaneTree tree(lane_count(rows, batch.tokens.dim(1), options.lanes));
  // No second block of gradients is needed if lanes is 1, or for a single lane that gives the same sums.
  if (options.lanes == 1 || (options.fresh && tree.lanes() == 1)) return sums.add(pass(batch, options));
  std::vector<Node> nodes = compute(batch, rows, tree, {0, tree.lanes()}, options);
  std::vector<LaneRange> ranges;
  for (const Node& node : nodes) ranges.push_back(node.lanes);
  const auto passes = static_cast<int64_t>(4 * nodes.size());
  const ProfileSpan span("sum of lanes", Pass::none,
                         passes * params_.dense_size() * static_cast<int64_t>(sizeof(real)));
  tree.finish(ranges, [&](size_t left, size_t right) {
    nodes[left].grads->add(*nodes[right].grads);
    nodes[left].sums.add(nodes[right].sums);
  });
  params_.grad_block().add(*nodes.front().grads);
  sums.add(nodes.front().sums);
  give_back(std::move(nodes));
}

}  // namespace capstan
