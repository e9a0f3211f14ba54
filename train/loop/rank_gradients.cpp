#include "train/loop/rank_gradients.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "core/kernels/elementwise.hpp"
#include "core/machine/profile.hpp"
#include "train/loop/pace.hpp"

namespace capstan {
namespace {

/// Numbers of one message: long enough for the network's full rate, short enough to be added up while others arrive.
constexpr int64_t bucket = 1 << 18;
/// Buckets that may arrive at the same time; they are in memory meanwhile.
constexpr int64_t buckets_ahead = 4;

int64_t buckets_of(const Elements& part) { return (part.size() + bucket - 1) / bucket; }

Elements bucket_of(const Elements& part, int64_t index) {
  const int64_t begin = part.begin + index * bucket;
  return {begin, std::min(begin + bucket, part.end)};
}

size_t bytes_of(int64_t numbers) { return static_cast<size_t>(numbers) * sizeof(real); }

/// What every rank tells the others about its part of a batch; the sums of its nodes follow.
struct Report {
  int32_t signal = 0, failed = 0;
  double clock = 0, seconds = 0;
};

}  // namespace

struct RankGradients::Source {
  int rank;
  size_t index;  // among the rank's nodes
  LaneRange lanes;
};

std::vector<Lanes::Node> RankGradients::compute(const Batch& rows, const BatchShare& share, const PassOptions& options,
                                                std::string& problem) {
  const Stopwatch watch;
  std::vector<Lanes::Node> nodes;
  try {
    if (share.lanes.size() > 0) nodes = lanes_.compute(rows, share.rows, share.tree, share.lanes, options);
  } catch (const std::domain_error& error) {
    problem = error.what();
    nodes.clear();
  }
  own_seconds_ = watch.seconds();
  longest_ = std::max(longest_, own_seconds_);
  ranks_.expect_pause(longest_);
  return nodes;
}

/// Loss and counts go the same way as gradients, but all ranks finish their tree.
void RankGradients::exchange_reports(const std::vector<Lanes::Node>& nodes, const std::vector<Source>& sources,
                                     const BatchShare& share, const std::string& problem, StepSums& sums) {
  size_t most = 0;
  for (const Source& source : sources) most = std::max(most, source.index + 1);
  const size_t size = sizeof(Report) + most * sizeof(StepSums);
  std::vector<char> all(size * static_cast<size_t>(ranks_.size()));
  char* const mine = all.data() + size * static_cast<size_t>(ranks_.rank());
  const Report report{own_signal_, problem.empty() ? 0 : 1, own_clock_, own_seconds_};
  std::memcpy(mine, &report, sizeof(report));
  for (size_t i = 0; i < nodes.size(); ++i)
    std::memcpy(mine + sizeof(report) + i * sizeof(StepSums), &nodes[i].sums, sizeof(StepSums));
  ranks_.gather_blocks(all.data(), size);

  bool failed = false;
  lane_seconds_.resize(static_cast<size_t>(ranks_.size()), 0);
  lane_counts_.resize(lane_seconds_.size(), 0);
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    Report other;
    const auto at = static_cast<size_t>(rank);
    std::memcpy(&other, all.data() + size * at, sizeof(other));
    if (news_.signal == 0) news_.signal = other.signal;
    if (rank == 0) news_.clock = other.clock;
    failed = failed || other.failed != 0;
    lane_seconds_[at] += other.seconds;
    lane_counts_[at] += static_cast<double>(share.tree.lanes_of(rank, ranks_.size()).size());
  }
  if (failed) {
    for (const std::string& text : ranks_.gather(problem))
      if (!text.empty()) throw std::domain_error(text);
  }
  std::vector<StepSums> of_nodes;
  std::vector<LaneRange> lanes;
  for (const Source& source : sources) {
    StepSums node;
    std::memcpy(&node,
                all.data() + size * static_cast<size_t>(source.rank) + sizeof(Report) + source.index * sizeof(StepSums),
                sizeof(node));
    of_nodes.push_back(node);
    lanes.push_back(source.lanes);
  }
  share.tree.finish(lanes, [&](size_t left, size_t right) { of_nodes[left].add(of_nodes[right]); });
  sums.add(of_nodes.front());
}

void RankGradients::add_gradients(const Batch& rows, const BatchShare& share, const PassOptions& options, int signal,
                                  double clock, StepSums& sums) {
  own_signal_ = signal;
  own_clock_ = clock;
  std::string problem;
  std::vector<Lanes::Node> nodes = compute(rows, share, options, problem);
  std::vector<Source> sources;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    size_t index = 0;
    for (const LaneRange& lanes : share.tree.nodes_of(share.tree.lanes_of(rank, ranks_.size())))
      sources.push_back({rank, index++, lanes});
  }
  {
    const ProfileSpan span("wait for ranks", Pass::none);
    exchange_reports(nodes, sources, share, problem, sums);
  }
  const ProfileSpan span("gradients between ranks", Pass::none);
  reduce_dense(nodes, sources, share.tree);
  reduce_tables(nodes, sources, share.tree);
  lanes_.give_back(std::move(nodes));
}

/// The nodes of one bucket, while they arrive.
struct RankGradients::Arrivals {
  Elements elements;
  std::vector<real*> nodes;    // by source
  std::vector<Array> buffers;  // of those that arrive
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

namespace {

/// The rows of a table's gradient within [begin, end), which are neighbours.
struct RowSpan {
  size_t begin = 0, end = 0;
  int64_t count() const { return static_cast<int64_t>(end - begin); }
};

RowSpan rows_within(const RowGrads& grads, int64_t begin, int64_t end) {
  const std::vector<int64_t>& rows = grads.rows();
  const auto place = [&](int64_t row) {
    return static_cast<size_t>(std::lower_bound(rows.begin(), rows.end(), row) - rows.begin());
  };
  return {place(begin), place(end)};
}

std::vector<const Param*> tables_of(const ParamStore& params) {
  std::vector<const Param*> tables;
  for (const Param& param : params.params())
    if (param.table >= 0) tables.push_back(&param);
  return tables;
}

/// The rows of a table that a rank owns.
Elements rows_of_rank(const Shares& shares, const Param& table, int rank) {
  const Elements part = shares.part(static_cast<size_t>(table.table) + 1, rank);
  const int64_t width = table.var.dim(1);
  return {(part.begin - table.offset) / width, (part.end - table.offset) / width};
}

}  // namespace

/// Rows that no lane has read are not sent.
void RankGradients::reduce_tables(std::vector<Lanes::Node>& nodes, const std::vector<Source>& sources,
                                  const LaneTree& tree) {
  const std::vector<const Param*> tables = tables_of(params_);
  if (tables.empty()) return;
  const int me = ranks_.rank();
  const auto others = static_cast<size_t>(ranks_.size());
  std::vector<Pending> pending;
  // First how many rows of every table each node has for each owner.
  std::vector<size_t> nodes_of(others, 0);
  for (const Source& source : sources) ++nodes_of[static_cast<size_t>(source.rank)];
  std::vector<std::vector<int64_t>> to(others), from(others);
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const auto at = static_cast<size_t>(rank);
    for (const Lanes::Node& node : nodes)
      for (const Param* const table : tables) {
        const Elements rows = rows_of_rank(shares_, *table, rank);
        to[at].push_back(
            rows_within(node.grads->tables()[static_cast<size_t>(table->table)], rows.begin, rows.end).count());
      }
    if (rank == me) continue;
    from[at].resize(nodes_of[at] * tables.size());
    if (!from[at].empty()) pending.push_back(ranks_.receive(rank, from[at].data(), from[at].size() * sizeof(int64_t)));
    if (!to[at].empty()) pending.push_back(ranks_.send(rank, to[at].data(), to[at].size() * sizeof(int64_t)));
  }
  ranks_.wait(pending);
  pending.clear();
  // Then the rows themselves.
  for (int step = 1; step < ranks_.size(); ++step) {
    const int owner = (me + step) % ranks_.size();
    for (Lanes::Node& node : nodes)
      for (const Param* const table : tables) {
        RowGrads& grads = node.grads->tables()[static_cast<size_t>(table->table)];
        const Elements rows = rows_of_rank(shares_, *table, owner);
        const RowSpan span = rows_within(grads, rows.begin, rows.end);
        if (span.count() == 0) continue;
        const int64_t width = table->var.dim(1);
        pending.push_back(
            ranks_.send(owner, grads.rows().data() + span.begin, static_cast<size_t>(span.count()) * sizeof(int64_t)));
        pending.push_back(ranks_.send(owner, grads.data() + static_cast<int64_t>(span.begin) * width,
                                      bytes_of(span.count() * width)));
      }
  }
  struct Rows {
    std::vector<int64_t> rows;
    Array values;
  };
  std::vector<std::vector<Rows>> arrived(sources.size());  // by source and table
  std::vector<LaneRange> lanes;
  for (size_t s = 0; s < sources.size(); ++s) {
    const Source& source = sources[s];
    lanes.push_back(source.lanes);
    for (const Param* const table : tables) {
      const int64_t width = table->var.dim(1);
      const auto t = static_cast<size_t>(table->table);
      Rows rows;
      if (source.rank == me) {
        const RowGrads& grads = nodes[source.index].grads->tables()[t];
        const Elements own = rows_of_rank(shares_, *table, me);
        const RowSpan span = rows_within(grads, own.begin, own.end);
        rows.rows.assign(grads.rows().begin() + static_cast<std::ptrdiff_t>(span.begin),
                         grads.rows().begin() + static_cast<std::ptrdiff_t>(span.end));
        rows.values = Array(Shape{span.count(), width});
        if (span.count() > 0)
          kernels::copy(rows.values.mutable_data(), grads.values().data() + static_cast<int64_t>(span.begin) * width,
                        span.count() * width);
      } else {
        const int64_t count = from[static_cast<size_t>(source.rank)][source.index * tables.size() + t];
        rows.rows.resize(static_cast<size_t>(count));
        rows.values = Array(Shape{count, width});
        if (count > 0) {
          pending.push_back(ranks_.receive(source.rank, rows.rows.data(), rows.rows.size() * sizeof(int64_t)));
          pending.push_back(ranks_.receive(source.rank, rows.values.mutable_data(), bytes_of(count * width)));
        }
      }
      arrived[s].push_back(std::move(rows));
    }
  }
  ranks_.wait(pending);
  for (const Param* const table : tables) {
    const auto t = static_cast<size_t>(table->table);
    std::vector<RowGrads> grads;
    for (std::vector<Rows>& of_source : arrived)
      grads.push_back(of_source[t].rows.empty()
                          ? RowGrads()
                          : RowGrads(std::move(of_source[t].rows), std::move(of_source[t].values)));
    tree.finish(lanes, [&](size_t left, size_t right) { grads[left].add(std::move(grads[right])); });
    params_.row_grads(*table).add(std::move(grads.front()));
  }
  for (Lanes::Node& node : nodes)
    for (RowGrads& table : node.grads->tables()) table.clear();
}

double RankGradients::norm(double scale) {
  const std::vector<double> mine = squares_of_pieces(params_, shares_, ranks_.rank());
  const ProfileSpan span("wait for ranks", Pass::none);
  std::vector<std::vector<double>> all;
  for (const std::string& text :
       ranks_.gather({reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(double)})) {
    all.emplace_back(text.size() / sizeof(double));
    if (!text.empty()) std::memcpy(all.back().data(), text.data(), text.size());
  }
  return gradient_norm(shares_, all, scale);
}

void RankGradients::update(const std::function<void()>& update) {
  std::vector<std::vector<int64_t>> rows;
  for (const Param* const table : tables_of(params_)) rows.push_back(params_.row_grads(*table).rows());
  update();
  const ProfileSpan span("weights between ranks", Pass::none);
  gather_dense();
  gather_rows(rows);
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

/// Of tables, the rows that were updated: `rows` of this rank, by table.
void RankGradients::gather_rows(const std::vector<std::vector<int64_t>>& rows) {
  const std::vector<const Param*> tables = tables_of(params_);
  for (size_t t = 0; t < tables.size(); ++t) {
    const int64_t width = tables[t]->var.dim(1);
    real* const values = params_.values() + tables[t]->offset;
    const std::vector<int64_t> counts = ranks_.gather_values(static_cast<int64_t>(rows[t].size()));
    std::vector<Pending> pending;
    Array mine(Shape{static_cast<int64_t>(rows[t].size()), width});
    for (size_t i = 0; i < rows[t].size(); ++i)
      kernels::copy(mine.mutable_data() + static_cast<int64_t>(i) * width, values + rows[t][i] * width, width);
    std::vector<std::vector<int64_t>> places(counts.size());
    std::vector<Array> arrived;
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      const auto at = static_cast<size_t>(rank);
      const bool own = rank == ranks_.rank();
      arrived.emplace_back(Shape{own ? 0 : counts[at], width});
      if (own || counts[at] == 0) continue;
      places[at].resize(static_cast<size_t>(counts[at]));
      pending.push_back(ranks_.receive(rank, places[at].data(), places[at].size() * sizeof(int64_t)));
      pending.push_back(ranks_.receive(rank, arrived.back().mutable_data(), bytes_of(counts[at] * width)));
    }
    for (int step = 1; step < ranks_.size() && !rows[t].empty(); ++step) {
      const int rank = (ranks_.rank() + step) % ranks_.size();
      pending.push_back(ranks_.send(rank, rows[t].data(), rows[t].size() * sizeof(int64_t)));
      pending.push_back(ranks_.send(rank, mine.data(), bytes_of(mine.size())));
    }
    ranks_.wait(pending);
    for (size_t rank = 0; rank < places.size(); ++rank)
      for (size_t i = 0; i < places[rank].size(); ++i)
        kernels::copy(values + places[rank][i] * width, arrived[rank].data() + static_cast<int64_t>(i) * width, width);
  }
}

void RankGradients::gather_values() {
  gather_dense();
  std::vector<std::vector<int64_t>> all;
  for (const Param* const table : tables_of(params_)) {
    all.emplace_back();
    const Elements rows = rows_of_rank(shares_, *table, ranks_.rank());
    for (int64_t row = rows.begin; row < rows.end; ++row) all.back().push_back(row);
  }
  gather_rows(all);
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
