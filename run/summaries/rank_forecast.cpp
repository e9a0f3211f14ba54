// Fills in the model of costs from a configuration and from the speed of this machine.
// tests/cli/training/test_ranks.cpp.
#include "run/summaries/rank_forecast.hpp"

#include <algorithm>

#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "train/rank_steps/rank_cost.hpp"
#include "train/steps/lanes.hpp"

namespace capstan {
namespace {

/// The share of a connection's rate that Open MPI reaches over TCP in both directions, which is less where several
/// ranks send to one (docs/scaling.md).
double network_share(int ranks) { return ranks == 2 ? 0.8 : 0.7; }

/// Tokens per second of one rank on one thread: a step reaches about half the rate of matrix products.
double estimated_speed(const ModelSummary& summary) {
  constexpr double share = 0.5;
  set_threads(1);
  return share * product_rate() / summary.training_flops();
}

/// A line for each part of a step.
std::string cost_lines(const RankPlan& plan, const RankCost& cost, double seconds_alone) {
  const auto line = [](const char* name, double seconds, const std::string& more) {
    return fmt::format("{:<22}{:>10.2f} ms  {}\n", name, 1e3 * seconds, more);
  };
  const double speedup = seconds_alone / cost.step();
  return line("lanes", cost.compute, fmt::format("{} of {}, one after the other", cost.lanes, plan.lanes)) +
         line("gradients", cost.exchange,
              fmt::format("{} sent, {} node{} of the tree", bytes_text(cost.gradient_bytes), cost.nodes,
                          cost.nodes == 1 ? "" : "s")) +
         line("weights", cost.gather, fmt::format("{} sent", bytes_text(cost.weight_bytes))) +
         line("short messages", cost.rounds, "") +
         line("step", cost.step(),
              fmt::format("{:.2f} times as fast as one rank, {:.0f} % of {}", speedup, 100 * speedup / plan.ranks,
                          plan.ranks));
}

std::string memory_line(const MemoryNeed& need) {
  return fmt::format("memory per rank, at least: {} ({} parameters, {} gradients, {} optimizer)\n",
                     bytes_text(need.parameters + need.gradients + need.optimizer), bytes_text(need.parameters),
                     bytes_text(need.gradients), bytes_text(need.optimizer));
}

}  // namespace

std::string rank_forecast(const RankForecast& asked, const RunConfig& config, const RunModel& model, DataExtent extent,
                          int64_t length) {
  const TrainConfig& train = config.train;
  const int64_t rows = train.batch_tokens > 0 ? std::max<int64_t>(1, train.batch_tokens / length) : train.batch_size;
  const auto tokens = static_cast<double>(rows * length);
  const double speed = asked.speed > 0 ? asked.speed : estimated_speed(model.summary(length));
  RankPlan plan;
  plan.ranks = static_cast<int>(asked.ranks);
  plan.lanes = lane_count(rows, length, train.lanes);
  plan.numbers = model.params().dense_size();
  plan.batches = train.accumulate;
  plan.bytes_per_second = network_share(plan.ranks) * asked.bandwidth * 1e9 / 8;
  plan.latency = asked.latency * 1e-6;
  plan.lane_seconds = tokens / static_cast<double>(plan.lanes) / speed;
  RankPlan alone = plan;
  alone.ranks = 1;
  extent.examples = rows;
  extent.example_tokens = static_cast<double>(length);
  std::string text = fmt::format(
      "\n{} ranks, {:g} Gbit/s, latency {:g} us; a batch of {:.0f} tokens in {} lanes, {:.0f} tokens/s per rank{}\n",
      plan.ranks, asked.bandwidth, asked.latency, tokens, plan.lanes, speed,
      asked.speed > 0 ? "" : " (estimated from the products of this machine; --speed)");
  if (plan.ranks > plan.lanes)
    text += fmt::format("{} of {} ranks have a lane: set train.lanes to {} or a multiple of it\n", plan.lanes,
                        plan.ranks, plan.ranks);
  return text + cost_lines(plan, predict_cost(plan), predict_cost(alone).step()) +
         memory_line(memory_need(config, extent, plan.ranks));
}

}  // namespace capstan
