// A step's gradients and weights between ranks.
//
// Every rank computes its lanes and adds them up as far as the tree of lanes allows. What is left, a few nodes, goes to
// the ranks that own the parameters, which finish the tree. They update the parameters and send the new values to all.
// rank_gradients.cpp has the dense parameters, rank_tables.cpp the tables that are updated by rows.
//
// The sums are those of one process with the same lanes, bit by bit, whatever the number of ranks:
// tests/train/test_ranks.cpp and test_communicator.cpp. RankStep is the only user.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "data/batches/batcher.hpp"
#include "train/optimizers/optimizer.hpp"
#include "train/ranks/communicator.hpp"
#include "train/steps/lanes.hpp"
#include "train/steps/training_step.hpp"

namespace capstan {

/// The lanes of a batch, and which of the lanes a rank computes.
struct BatchShare {
  int64_t rows = 0;  // of the whole batch
  LaneTree tree{1};
  LaneRange lanes;
};

/// The batches of a source, of each only the rows of this rank's lanes.
class RankBatches final : public BatchSource {
 public:
  /// `lanes`: train.lanes. The source must outlive it.
  RankBatches(const BatchSource& source, int64_t lanes, int rank, int ranks)
      : source_(source), lanes_(lanes), rank_(rank), ranks_(ranks) {}

  BatchShare share(int64_t epoch, int64_t index) const;

  int64_t examples_per_epoch() const override { return source_.examples_per_epoch(); }
  int64_t batches_per_epoch(int64_t epoch) const override { return source_.batches_per_epoch(epoch); }
  /// This rank's part of the batch; empty if it has no lane.
  Batch batch(int64_t epoch, int64_t index) const override;

 private:
  const BatchSource& source_;
  int64_t lanes_;
  int rank_, ranks_;
};

/// The gradients and weights of one rank. Methods that say "collective" are called by all ranks, in the same order.
class RankGradients {
 public:
  /// All references must outlive it.
  RankGradients(Communicator& ranks, ParamStore& params, const Shares& shares, Lanes& lanes)
      : ranks_(ranks), params_(params), shares_(shares), lanes_(lanes) {}

  /// Collective. Computes this rank's part of a batch; afterwards the gradients of what it owns have the batch's added,
  /// and `sums` the sums of the whole batch. `own`: what this rank tells the others. Throws
  /// std::domain_error on all ranks when the tape of one found a value that is not finite, Stopped on all when one was
  /// asked to stop.
  void add_gradients(const Batch& rows, const BatchShare& share, const PassOptions& options, const AskStopStatus& own,
                     StepSums& sums);
  /// What all ranks know since the last batch: a signal that any rank was sent, and the clock of rank 0.
  const StopStatus& stop_status() const { return stop_status_; }
  /// Collective, where a rank was told to stop between two batches.
  void note_signal(int signal) {
    for (const int other : ranks_.gather_values(signal))
      if (stop_status_.signal == 0) stop_status_.signal = other;
  }

  /// Collective: the norm of all gradients times `scale`.
  double norm(double scale);
  /// Collective: runs `update`, which changes what this rank owns, and sends the new values to all.
  void update(const std::function<void()>& update);

  /// The ranks' mean seconds per lane since the last call that gave some; empty, without beginning anew, as long as all
  /// of them have computed for less than a second.
  std::vector<double> take_lane_seconds();

 private:
  /// A node, and the rank that has it.
  struct Source {
    int rank;
    size_t index;  // among the rank's nodes
    LaneRange lanes;
  };
  /// Why a rank has no gradients.
  struct Ending {
    std::string problem = {};  // the tape's message about a value that is not finite; "": none
    bool stopped = false;
  };
  struct Arrivals;
  class TableExchange;

  std::vector<Lanes::Node> compute(const Batch& rows, const BatchShare& share, const PassOptions& options,
                                   Ending& ending);
  void exchange_reports(const std::vector<Lanes::Node>& nodes, const std::vector<Source>& sources,
                        const BatchShare& share, const Ending& ending, const AskStopStatus& own, StepSums& sums);
  void reduce_dense(std::vector<Lanes::Node>& nodes, const std::vector<Source>& sources, const LaneTree& tree);
  void reduce_tables(std::vector<Lanes::Node>& nodes, const std::vector<Source>& sources, const LaneTree& tree);
  void gather_dense();
  /// `rows`: those of this rank, by table.
  void gather_rows(const std::vector<std::vector<int64_t>>& rows);

  Communicator& ranks_;
  ParamStore& params_;
  const Shares& shares_;
  Lanes& lanes_;
  StopStatus stop_status_;
  double own_seconds_ = 0, longest_ = 0;            // of this rank's last batch, and of its longest
  std::vector<double> lane_seconds_, lane_counts_;  // of each rank, since take_lane_seconds()
};

/// Bytes of a message of so many elements.
inline size_t bytes_of(int64_t numbers) { return static_cast<size_t>(numbers) * sizeof(real); }

/// The slowest rank, where it takes at least a fifth longer than the median (of two ranks: than the other).
struct SlowRank {
  int rank;
  double factor;  // its time divided by the median
};
std::optional<SlowRank> slow_rank(const std::vector<double>& lane_seconds);

}  // namespace capstan
