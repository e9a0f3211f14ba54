// Puts a step of several ranks together from the lanes and parameters of this rank, and warns of ranks that have no
// lane or are slow. tests/train/test_ranks.cpp holds that bits do not depend on the number of ranks.
#include "train/rank_steps/rank_step.hpp"

namespace capstan {

namespace {

RankPart part_of_rank(const ParamStore& params, const BatchSource& train, const TrainConfig& config,
                      const Communicator& ranks) {
  Shares shares = shares_for(config.optimizer, params, ranks.size());
  std::vector<Elements> owned = shares.parts(ranks.rank());
  return {{train, config.lanes, ranks.rank(), ranks.size()}, std::move(shares), std::move(owned)};
}

}  // namespace

RankStep::RankStep(const Task& task, ParamStore& params, const BatchSource& train, const TrainConfig& config,
                   Communicator& ranks)
    : RankPart(part_of_rank(params, train, config, ranks)),
      TrainingStep(task, params, own_batches, config, owned),
      ranks_(ranks),
      gradients_(ranks, params, shares, lanes_) {}

RunParts RankStep::parts(RunState& state) { return {params_, optimizer_, state, &ranks_, owned}; }

void RankStep::add_gradients(int64_t epoch, int64_t index, const PassOptions& options, const AskStopStatus& own,
                             StepSums& sums) {
  const Batch batch = batches_.batch(epoch, index);
  gradients_.add_gradients(batch, own_batches.share(epoch, index), options, own, sums);
}

TrainingStep::Description RankStep::description() const {
  Description result{ranks_.description(), ""};
  const int64_t lanes = own_batches.share(0, 0).tree.lanes();
  if (lanes < ranks_.size())
    result.warning = fmt::format(
        "train.lanes: the first batch has too few lanes ({}) for {} ranks, so that {} of them have nothing "
        "to compute; set train.lanes to {} or a multiple of it, or make batches larger",
        lanes, ranks_.size(), ranks_.size() - lanes, ranks_.size());
  return result;
}

std::string RankStep::slow_warning() {
  const auto slow = slow_rank(gradients_.take_lane_seconds());
  if (!slow || slow->rank == slow_rank_) return "";
  slow_rank_ = slow->rank;
  return fmt::format("{} is slower than the median of the ranks by {:.0f} %, and the others wait for it",
                     ranks_.name_of(slow->rank), 100 * (slow->factor - 1));
}

std::unique_ptr<TrainingStep> make_step(const Task& task, ParamStore& params, const BatchSource& train,
                                        const TrainConfig& config, Communicator& ranks) {
  if (ranks.size() == 1) return std::make_unique<LocalStep>(task, params, train, config);
  const int64_t most = config.lanes > 0 ? config.lanes : max_lanes;
  if (ranks.size() > most)
    throw ConfigError(fmt::format(
        "train.lanes: {}; {} ranks need at least as many: a rank computes whole lanes of a batch. Set train.lanes "
        "to {} or a multiple of it (results depend on this number, not on that of the ranks), or start fewer ranks",
        config.lanes > 0 ? std::to_string(config.lanes) : fmt::format("0 means up to {} lanes", max_lanes),
        ranks.size(), ranks.size(), ranks.size()));
  return std::make_unique<RankStep>(task, params, train, config, ranks);
}

}  // namespace capstan
