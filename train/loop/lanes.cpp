#include "train/loop/lanes.hpp"

#include <algorithm>
#include <exception>
#include <optional>

#include "core/machine/parallel.hpp"
#include "core/machine/profile.hpp"
#include "train/loop/micro_batches.hpp"

namespace capstan {
namespace {

constexpr int64_t least_tokens = 512;

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
      std::clamp<int64_t>(rows * columns / least_tokens, 1, std::min(most_lanes, std::max<int64_t>(rows, 1)));
  for (int64_t count = wanted; 2 * count > wanted; --count)
    if (rows % count == 0) return count;
  return wanted;
}

/// The nodes that wait for their sibling.
struct Lanes::Tree {
  int64_t lanes = 0;
  std::vector<Node> waiting;    // by the node's first lane
  std::vector<int64_t> widths;  // of the waiting nodes; 0: none waits
};

StepSums Lanes::pass(const Batch& batch, const PassOptions& options) const {
  StepSums sums;
  for (const Batch& piece : split_rows(batch, options.micro_batch_tokens)) {
    TapeScope tape(options.tape);
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
void Lanes::finish_lane(Tree& tree, int64_t lane, Node node) {
  int64_t first = lane;
  for (int64_t width = 1; 2 * width < tree.lanes; width *= 2) {
    const bool right = (first & width) != 0;
    const int64_t sibling = right ? first - width : first + width;
    if (sibling >= tree.lanes) continue;  // passed through
    Node other;
    {
      const std::lock_guard lock(mutex_);
      if (tree.widths[static_cast<size_t>(sibling)] != width) {
        tree.waiting[static_cast<size_t>(first)] = std::move(node);
        tree.widths[static_cast<size_t>(first)] = width;
        return;
      }
      other = std::move(tree.waiting[static_cast<size_t>(sibling)]);
      tree.widths[static_cast<size_t>(sibling)] = 0;
    }
    if (right) std::swap(node, other);
    const ProfileSpan span("sum of lanes", Pass::none, 4 * params_.dense_size() * static_cast<int64_t>(sizeof(real)));
    node.grads->add(*other.grads);
    node.sums.add(other.sums);
    give_block(std::move(other.grads));
    first = std::min(first, sibling);
  }
  const std::lock_guard lock(mutex_);
  tree.waiting[static_cast<size_t>(first)] = std::move(node);
}

void Lanes::add_gradients(const Batch& batch, const PassOptions& options, StepSums& sums) {
  const int64_t rows = batch.tokens.dim(0), lanes = lane_count(rows, batch.tokens.dim(1), options.lanes);
  if (lanes == 1) return sums.add(pass(batch, options));
  Tree tree{lanes, std::vector<Node>(static_cast<size_t>(lanes)), std::vector<int64_t>(static_cast<size_t>(lanes), 0)};
  std::vector<std::exception_ptr> errors(static_cast<size_t>(lanes));
  std::optional<ProfiledLanes> profiles(lanes);
  parallel_units(lanes, [&](int64_t lane) {
    try {
      const OneThread alone;
      const ProfiledLane profiled(*profiles, lane);
      Node node{take_block(), {}};
      const LaneGrads mine(params_.grad_block(), *node.grads);
      node.sums = pass(rows_of(batch, rows * lane / lanes, rows * (lane + 1) / lanes), options);
      finish_lane(tree, lane, std::move(node));
    } catch (...) {
      errors[static_cast<size_t>(lane)] = std::current_exception();
    }
  });
  profiles.reset();
  for (const std::exception_ptr& error : errors)
    if (error != nullptr) std::rethrow_exception(error);
  const ProfileSpan span("sum of lanes", Pass::none, 8 * params_.dense_size() * static_cast<int64_t>(sizeof(real)));
  int64_t half = 1;
  while (2 * half < lanes) half *= 2;
  Node &left = tree.waiting.front(), &right = tree.waiting[static_cast<size_t>(half)];
  left.grads->add(*right.grads);
  left.sums.add(right.sums);
  params_.grad_block().add(*left.grads);
  sums.add(left.sums);
  give_block(std::move(left.grads));
  give_block(std::move(right.grads));
}

}  // namespace capstan
