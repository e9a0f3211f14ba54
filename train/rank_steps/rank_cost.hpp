// What several ranks cost: messages and time of a step, predicted for `capstan inspect` and docs/scaling.md.
// tests/train/test_rank_cost.cpp; what ranks really send is counted in test_ranks.cpp.
#pragma once

#include <cstdint>

namespace capstan {

/// What the prediction depends on.
struct RankPlan {
  int ranks = 1;
  int64_t lanes = 8;            // of a batch
  int64_t numbers = 0;          // dense parameters
  int64_t batches = 1;          // of a step: train.accumulate
  double bytes_per_second = 0;  // a connection's rate in each direction
  double latency = 0;           // seconds of a short message
  double lane_seconds = 0;      // a rank's time for a lane
};

/// Cost of the busiest rank.
struct RankCost {
  int64_t lanes = 0;                                         // lanes computed
  int64_t nodes = 0;                                         // nodes of the tree that it sends
  double gradient_bytes = 0, weight_bytes = 0;               // that it sends in a step
  double compute = 0, exchange = 0, gather = 0, rounds = 0;  // seconds: lanes, gradients, weights, short messages
  double step() const { return compute + exchange + gather + rounds; }
};

/// For a step of one batch, with P numbers and R ranks: compute = lanes of the rank * lane_seconds;  exchange = nodes *
/// P (R - 1) / R numbers sent, or received by an owner, whichever is more;  gather = P (R - 1) / R numbers;  rounds =
/// latency of three gatherings of ceil(log2 R) messages, and of the two exchanges. Further batches add their lanes,
/// their exchange, and one gathering. Compute and communication do not overlap. No tables that are updated by rows.
RankCost predict_cost(const RankPlan& plan);

}  // namespace capstan
