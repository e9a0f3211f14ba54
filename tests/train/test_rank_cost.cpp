// What several ranks cost, counted by hand.
#include "train/rank_steps/rank_cost.hpp"

#include <doctest/doctest.h>

#include "core/base/real.hpp"

using namespace capstan;

TEST_CASE("the cost of a step: lanes, gradients, weights and short messages") {
  RankPlan plan;
  plan.numbers = 1000;
  plan.batches = 2;
  plan.bytes_per_second = 1e4;
  plan.latency = 0.25;
  plan.lane_seconds = 0.5;
  const RankCost alone = predict_cost(plan);
  CHECK(alone.compute == 2 * 8 * 0.5);
  CHECK(alone.step() == alone.compute);

  plan.ranks = 4;
  const RankCost four = predict_cost(plan);
  const double part = 250 * sizeof(real);
  CHECK(four.lanes == 2);
  CHECK(four.nodes == 1);
  CHECK(four.gradient_bytes == 2 * 3 * part);
  CHECK(four.weight_bytes == 3 * part);
  CHECK(four.compute == 2 * 2 * 0.5);
  CHECK(four.exchange == 6 * part / 1e4);
  CHECK(four.gather == 3 * part / 1e4);
  CHECK(four.rounds == 0.25 * (2 * 3 + 2 * 2 + 1));
  CHECK(four.step() == doctest::Approx(four.compute + four.exchange + four.gather + four.rounds));
}

TEST_CASE("the cost of a step is that of the rank with the most to do") {
  RankPlan plan;
  plan.ranks = 3;
  plan.numbers = 300;
  plan.bytes_per_second = 100;
  const RankCost cost = predict_cost(plan);  // lanes 0 and 1; 2 to 4; 5 to 7
  CHECK(cost.lanes == 3);
  CHECK(cost.nodes == 2);
  const double part = 100 * sizeof(real);
  CHECK(cost.gradient_bytes == 2 * 2 * part);
  CHECK(cost.exchange == 4 * part / 100);  // an owner receives the nodes of the two others: 4, or 3
}
