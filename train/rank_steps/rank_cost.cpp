// Adds up what the busiest ranks compute, send and receive in a step, from the tree of lanes alone. The
// messages must be those of rank_gradients: tests/train/test_rank_cost.cpp, and counted in test_ranks.cpp.
#include "train/rank_steps/rank_cost.hpp"

#include <algorithm>

#include "core/base/real.hpp"
#include "train/steps/lanes.hpp"

namespace capstan {

RankCost predict_cost(const RankPlan& plan) {
  const LaneTree tree(plan.lanes);
  RankCost cost;
  int64_t all_nodes = 0, fewest = 0;
  for (int64_t rank = 0; rank < plan.ranks; ++rank) {
    const LaneRange lanes = tree.lanes_of(rank, plan.ranks);
    const auto nodes = static_cast<int64_t>(tree.nodes_of(lanes).size());
    cost.lanes = std::max(cost.lanes, lanes.size());
    cost.nodes = std::max(cost.nodes, nodes);
    fewest = rank == 0 ? nodes : std::min(fewest, nodes);
    all_nodes += nodes;
  }
  const double batches = static_cast<double>(plan.batches);
  cost.compute = batches * static_cast<double>(cost.lanes) * plan.lane_seconds;
  if (plan.ranks == 1) return cost;
  const double part = static_cast<double>(plan.numbers) / plan.ranks * sizeof(real);  // of one owner
  cost.gradient_bytes = batches * static_cast<double>(cost.nodes) * (plan.ranks - 1) * part;
  cost.weight_bytes = (plan.ranks - 1) * part;
  const double received = batches * static_cast<double>(all_nodes - fewest) * part;
  int rounds = 0;
  for (int reach = 1; reach < plan.ranks; reach *= 2) ++rounds;
  // Per batch a report and an exchange; then sizes and sums of squares, and the weights.
  cost.rounds = plan.latency * (batches * (rounds + 1) + 2 * rounds + 1);
  if (plan.bytes_per_second > 0) {
    cost.exchange = std::max(cost.gradient_bytes, received) / plan.bytes_per_second;
    cost.gather = cost.weight_bytes / plan.bytes_per_second;
  }
  return cost;
}

}  // namespace capstan
