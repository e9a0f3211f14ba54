// Nodes are sent in buckets of a megabyte: while one bucket is added up along the tree of lanes, the next ones arrive.
// Loss and counts are exchanged first, with the signals, so that all ranks stop or fail together.
// tests/train/test_ranks.cpp.
#include "train/rank_steps/rank_gradients.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "core/base/stop.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/machine/profile.hpp"
#include "train/steps/lanes.hpp"

namespace capstan {

BatchShare RankBatches::share(int64_t epoch, int64_t index) const {
  const BatchExtent extent = source_.extent(epoch, index);
  const LaneTree tree(lane_count(extent.rows, extent.columns, lanes_));
  return {extent.rows, tree, tree.lanes_of(rank_, ranks_)};
}

Batch RankBatches::batch(int64_t epoch, int64_t index) const {
  const BatchShare own = share(epoch, index);
  if (own.lanes.size() == 0) return {};
  return source_.rows(epoch, index, lane_begin(own.rows, own.tree.lanes(), own.lanes.begin),
                      lane_begin(own.rows, own.tree.lanes(), own.lanes.end));
}

namespace {

/// Numbers of one message: long enough for the network's full rate, short enough to be added up while others arrive.
constexpr int64_t bucket = 1 << 18;
/// Buckets that may arrive at the same time, each with the elements of all nodes: they are in memory meanwhile.
constexpr int64_t buckets_ahead = 4;

int64_t buckets_of(const Elements& part) { return (part.size() + bucket - 1) / bucket; }

Elements bucket_of(const Elements& part, int64_t index) {
  const int64_t begin = part.begin + index * bucket;
  return {begin, std::min(begin + bucket, part.end)};
}

/// What every rank tells the others about its part of a batch; the sums of its nodes follow.
struct Report {
  int32_t signal = 0;
  int16_t failed = 0, stopped = 0;
  double clock = 0, seconds = 0;
};

}  // namespace

std::vector<Lanes::Node> RankGradients::compute(const Batch& rows, const BatchShare& share, const PassOptions& options,
                                                Ending& ending) {
  const Stopwatch watch;
  std::vector<Lanes::Node> nodes;
  try {
    if (share.lanes.size() > 0) nodes = lanes_.compute(rows, share.rows, share.tree, share.lanes, options);
  } catch (const std::domain_error& error) {
    ending.problem = error.what();
  } catch (const Stopped&) {
    ending.stopped = true;
  }
  own_seconds_ = watch.seconds();
  longest_ = std::max(longest_, own_seconds_);
  ranks_.expect_pause(longest_);
  return nodes;
}

/// Loss and counts go the same way as gradients, but all ranks finish their tree.
void RankGradients::exchange_reports(const std::vector<Lanes::Node>& nodes, const std::vector<Source>& sources,
                                     const BatchShare& share, const Ending& ending, const AskStopStatus& own,
                                     StepSums& sums) {
  size_t most = 0;
  for (const Source& source : sources) most = std::max(most, source.index + 1);
  const size_t size = sizeof(Report) + most * sizeof(StepSums);
  std::vector<char> reports(size * static_cast<size_t>(ranks_.size()));
  char* const mine = reports.data() + size * static_cast<size_t>(ranks_.rank());
  const StopStatus now = own();
  const Report report{now.signal, static_cast<int16_t>(ending.problem.empty() ? 0 : 1),
                      static_cast<int16_t>(ending.stopped ? 1 : 0), now.clock, own_seconds_};
  std::memcpy(mine, &report, sizeof(report));
  for (size_t i = 0; i < nodes.size(); ++i)
    std::memcpy(mine + sizeof(report) + i * sizeof(StepSums), &nodes[i].sums, sizeof(StepSums));
  ranks_.gather_blocks(reports.data(), size);

  bool failed = false, stopped = false;
  lane_seconds_.resize(static_cast<size_t>(ranks_.size()), 0);
  lane_counts_.resize(lane_seconds_.size(), 0);
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    Report other;
    const auto at = static_cast<size_t>(rank);
    std::memcpy(&other, reports.data() + size * at, sizeof(other));
    if (stop_status_.signal == 0) stop_status_.signal = other.signal;
    if (rank == 0) stop_status_.clock = other.clock;
    failed = failed || other.failed != 0;
    stopped = stopped || other.stopped != 0;
    lane_seconds_[at] += other.seconds;
    lane_counts_[at] += static_cast<double>(share.tree.lanes_of(rank, ranks_.size()).size());
  }
  if (stopped) throw Stopped();
  if (failed) {
    for (const std::string& text : ranks_.gather(ending.problem))
      if (!text.empty()) throw std::domain_error(text);
  }
  std::vector<StepSums> of_nodes;
  std::vector<LaneRange> lanes;
  for (const Source& source : sources) {
    StepSums node;
    std::memcpy(
        &node,
        reports.data() + size * static_cast<size_t>(source.rank) + sizeof(Report) + source.index * sizeof(StepSums),
        sizeof(node));
    of_nodes.push_back(node);
    lanes.push_back(source.lanes);
  }
  share.tree.finish(lanes, [&](size_t left, size_t right) { of_nodes[left].add(of_nodes[right]); });
  sums.add(of_nodes.front());
}

void RankGradients::add_gradients(const Batch& rows, const BatchShare& share, const PassOptions& options,
                                  const AskStopStatus& own, StepSums& sums) {
  Ending ending;
  std::vector<Lanes::Node> nodes = compute(rows, share, options, ending);
  const StopScope together(nullptr);  // a rank that stopped alone now would leave the others waiting
  std::vector<Source> sources;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    size_t index = 0;
    for (const LaneRange& lanes : share.tree.nodes_of(share.tree.lanes_of(rank, ranks_.size())))
      sources.push_back({rank, index++, lanes});
  }
  {
    const ProfileSpan span("wait for ranks", Pass::none);
    exchange_reports(nodes, sources, share, ending, own, sums);
  }
  const ProfileSpan span("gradients between ranks", Pass::none);
  reduce_dense(nodes, sources, share.tree);
  reduce_tables(nodes, sources, share.tree);
  lanes_.give_back(std::move(nodes));
}

/// One bucket of all nodes, while those of other ranks arrive.
struct RankGradients::Arrivals {
  Elements elements;
  std::vector<real*> nodes;    // by source: the elements of its node
  std::vector<Array> buffers;  // memory of the nodes that arrive
  std::vector<Pending> pending;
};

/// Buckets of what this rank owns arrive while those of others are sent; the tree is finished bucket by bucket.
void RankGradients::reduce_dense(std::vector<Lanes::Node>& nodes, const std::vector<Source>& sources,
                                 const LaneTree& tree) {
  const int me = ranks_.rank();
  const Elements own = shares_.part(0, me);
  std::vector<LaneRange> lanes;
  for (const Source& source : sources) lanes.push_back(source.lanes);
  std::vector<Pending> sent;
  int64_t most = 0;
  for (int rank = 0; rank < ranks_.size(); ++rank) most = std::max(most, buckets_of(shares_.part(0, rank)));

  std::vector<Arrivals> window;
  int64_t begun = 0;
  const auto begin_next = [&] {
    Arrivals arrivals;
    arrivals.elements = bucket_of(own, begun++);
    for (const Source& source : sources) {
      if (source.rank == me) {
        arrivals.nodes.push_back(nodes[source.index].grads->data() + arrivals.elements.begin);
        continue;
      }
      arrivals.buffers.emplace_back(Shape{arrivals.elements.size()});
      arrivals.nodes.push_back(arrivals.buffers.back().mutable_data());
      arrivals.pending.push_back(
          ranks_.receive(source.rank, arrivals.nodes.back(), bytes_of(arrivals.elements.size())));
    }
    window.push_back(std::move(arrivals));
  };
  while (begun < std::min(buckets_ahead, buckets_of(own))) begin_next();
  for (int64_t index = 0; index < most; ++index)
    for (int step = 1; step < ranks_.size(); ++step) {
      const int owner = (me + step) % ranks_.size();
      const Elements part = shares_.part(0, owner);
      if (index >= buckets_of(part)) continue;
      const Elements piece = bucket_of(part, index);
      for (Lanes::Node& node : nodes)
        sent.push_back(ranks_.send(owner, node.grads->data() + piece.begin, bytes_of(piece.size())));
    }
  while (!window.empty()) {
    Arrivals& next = window.front();
    ranks_.wait(next.pending);
    const int64_t count = next.elements.size();
    tree.finish(lanes,
                [&](size_t left, size_t right) { kernels::add_into(next.nodes[left], next.nodes[right], count); });
    kernels::add_into(params_.grads() + next.elements.begin, next.nodes.front(), count);
    window.erase(window.begin());
    if (begun < buckets_of(own)) begin_next();
  }
  ranks_.wait(sent);
  for (Lanes::Node& node : nodes) kernels::fill(node.grads->data(), node.grads->dense().size(), real{0});
}

double RankGradients::norm(double scale) {
  const std::vector<double> mine = squares_of_pieces(params_, shares_, ranks_.rank());
  const ProfileSpan span("wait for ranks", Pass::none);
  std::vector<std::vector<double>> squares_by_rank;
  for (const std::string& text :
       ranks_.gather({reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(double)})) {
    squares_by_rank.emplace_back(text.size() / sizeof(double));
    if (!text.empty()) std::memcpy(squares_by_rank.back().data(), text.data(), text.size());
  }
  return gradient_norm(shares_, squares_by_rank, scale);
}

/// Every owner sends its part to all others, in place.
void RankGradients::gather_dense() {
  const int me = ranks_.rank();
  std::vector<Pending> pending;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const Elements part = shares_.part(0, rank);
    for (int64_t index = 0; index < buckets_of(part); ++index) {
      const Elements piece = bucket_of(part, index);
      if (rank != me) pending.push_back(ranks_.receive(rank, params_.values() + piece.begin, bytes_of(piece.size())));
    }
  }
  const Elements own = shares_.part(0, me);
  for (int64_t index = 0; index < buckets_of(own); ++index) {
    const Elements piece = bucket_of(own, index);
    for (int step = 1; step < ranks_.size(); ++step)
      pending.push_back(
          ranks_.send((me + step) % ranks_.size(), params_.values() + piece.begin, bytes_of(piece.size())));
  }
  ranks_.wait(pending);
}

std::vector<double> RankGradients::take_lane_seconds() {
  std::vector<double> means;
  if (lane_seconds_.empty() || *std::max_element(lane_seconds_.begin(), lane_seconds_.end()) < 1) return means;
  for (size_t rank = 0; rank < lane_seconds_.size(); ++rank)
    means.push_back(lane_counts_[rank] > 0 ? lane_seconds_[rank] / lane_counts_[rank] : 0);
  lane_seconds_.assign(lane_seconds_.size(), 0);
  lane_counts_.assign(lane_counts_.size(), 0);
  return means;
}

std::optional<SlowRank> slow_rank(const std::vector<double>& lane_seconds) {
  std::vector<double> sorted;  // of ranks that compute at all
  for (const double seconds : lane_seconds)
    if (seconds > 0) sorted.push_back(seconds);
  if (sorted.size() < 2) return std::nullopt;
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[(sorted.size() - 1) / 2], slowest = sorted.back();
  if (slowest < 1.2 * median) return std::nullopt;
  const auto rank = std::find(lane_seconds.begin(), lane_seconds.end(), slowest) - lane_seconds.begin();
  return SlowRank{static_cast<int>(rank), slowest / median};
}

}  // namespace capstan
