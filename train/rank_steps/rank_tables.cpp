// RankGradients (rank_gradients.hpp): tables that are updated by rows, such as those of n-grams, of which only rows
// that a lane has read are sent. Nodes of a table are added along the same tree as dense gradients. First counts are
// exchanged, so that every message has a size that its receiver knows.
#include <algorithm>

#include "core/kernels/elementwise.hpp"
#include "core/machine/profile.hpp"
#include "train/rank_steps/rank_gradients.hpp"

namespace capstan {
namespace {

/// Places [begin, end) within the ascending rows of a table's gradient.
struct RowSpan {
  size_t begin = 0, end = 0;
  int64_t count() const { return static_cast<int64_t>(end - begin); }
};

/// The places of the rows [begin, end) of the table.
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

/// Some rows of a table's gradient.
struct Rows {
  std::vector<int64_t> rows;  // ascending
  Array values;               // (rows, width)
};

Rows copy_of(const RowGrads& grads, const RowSpan& span, int64_t width) {
  const auto begin = static_cast<std::ptrdiff_t>(span.begin), end = static_cast<std::ptrdiff_t>(span.end);
  Rows copy{{grads.rows().begin() + begin, grads.rows().begin() + end}, Array(Shape{span.count(), width})};
  if (span.count() > 0)
    kernels::copy(copy.values.mutable_data(), grads.values().data() + begin * width, span.count() * width);
  return copy;
}

}  // namespace

/// The rows of tables' gradients on their way to the ranks that own them. Rows that no lane has read are not sent.
class RankGradients::TableExchange {
 public:
  TableExchange(const RankGradients& gradients, const std::vector<const Param*>& tables,
                const std::vector<Lanes::Node>& nodes, const std::vector<Source>& sources)
      : ranks_(gradients.ranks_), shares_(gradients.shares_), tables_(tables), nodes_(nodes), sources_(sources) {}

  /// Called first: tells every rank how many rows of each table this rank's nodes have for it, and hears from every
  /// rank how many it has for this one.
  void exchange_counts();
  /// Called after exchange_counts(): send() begins to send the rows that others own, and the next function to receive
  /// the rows of this rank, by source and table.
  void send(std::vector<Pending>& pending);
  std::vector<std::vector<Rows>> receive(std::vector<Pending>& pending);

 private:
  const RowGrads& grads_of(const Lanes::Node& node, const Param& table) const {
    return node.grads->tables()[static_cast<size_t>(table.table)];
  }
  /// What a node has of the rows of an owner.
  RowSpan span_for(int owner, const Lanes::Node& node, const Param& table) const {
    const Elements rows = rows_of_rank(shares_, table, owner);
    return rows_within(grads_of(node, table), rows.begin, rows.end);
  }

  Communicator& ranks_;
  const Shares& shares_;
  const std::vector<const Param*>& tables_;
  const std::vector<Lanes::Node>& nodes_;
  const std::vector<Source>& sources_;
  std::vector<std::vector<int64_t>> counts_;  // by rank, then by node and table
};

void RankGradients::TableExchange::exchange_counts() {
  const auto size = static_cast<size_t>(ranks_.size());
  std::vector<size_t> nodes_of(size, 0);
  for (const Source& source : sources_) ++nodes_of[static_cast<size_t>(source.rank)];
  std::vector<std::vector<int64_t>> to(size);
  counts_.resize(size);
  std::vector<Pending> pending;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == ranks_.rank()) continue;
    const auto at = static_cast<size_t>(rank);
    for (const Lanes::Node& node : nodes_)
      for (const Param* const table : tables_) to[at].push_back(span_for(rank, node, *table).count());
    std::vector<int64_t>& from = counts_[at];
    from.resize(nodes_of[at] * tables_.size());
    if (!from.empty()) pending.push_back(ranks_.receive(rank, from.data(), from.size() * sizeof(int64_t)));
    if (!to[at].empty()) pending.push_back(ranks_.send(rank, to[at].data(), to[at].size() * sizeof(int64_t)));
  }
  ranks_.wait(pending);
}

void RankGradients::TableExchange::send(std::vector<Pending>& pending) {
  for (int step = 1; step < ranks_.size(); ++step) {
    const int owner = (ranks_.rank() + step) % ranks_.size();
    for (const Lanes::Node& node : nodes_)
      for (const Param* const table : tables_) {
        const RowGrads& grads = grads_of(node, *table);
        const RowSpan span = span_for(owner, node, *table);
        if (span.count() == 0) continue;
        const int64_t width = table->var.dim(1);
        pending.push_back(
            ranks_.send(owner, grads.rows().data() + span.begin, static_cast<size_t>(span.count()) * sizeof(int64_t)));
        pending.push_back(ranks_.send(owner, grads.values().data() + static_cast<int64_t>(span.begin) * width,
                                      bytes_of(span.count() * width)));
      }
  }
}

std::vector<std::vector<Rows>> RankGradients::TableExchange::receive(std::vector<Pending>& pending) {
  std::vector<std::vector<Rows>> arrived;
  for (const Source& source : sources_) {
    arrived.emplace_back();
    for (const Param* const table : tables_) {
      const int64_t width = table->var.dim(1);
      if (source.rank == ranks_.rank()) {
        const Lanes::Node& node = nodes_[source.index];
        arrived.back().push_back(copy_of(grads_of(node, *table), span_for(source.rank, node, *table), width));
        continue;
      }
      const int64_t count =
          counts_[static_cast<size_t>(source.rank)][source.index * tables_.size() + static_cast<size_t>(table->table)];
      Rows rows{std::vector<int64_t>(static_cast<size_t>(count)), Array(Shape{count, width})};
      if (count > 0) {
        pending.push_back(ranks_.receive(source.rank, rows.rows.data(), rows.rows.size() * sizeof(int64_t)));
        pending.push_back(ranks_.receive(source.rank, rows.values.mutable_data(), bytes_of(count * width)));
      }
      arrived.back().push_back(std::move(rows));
    }
  }
  return arrived;
}

void RankGradients::reduce_tables(std::vector<Lanes::Node>& nodes, const std::vector<Source>& sources,
                                  const LaneTree& tree) {
  const std::vector<const Param*> tables = tables_of(params_);
  if (tables.empty()) return;
  TableExchange exchange(*this, tables, nodes, sources);
  exchange.exchange_counts();
  std::vector<Pending> pending;
  exchange.send(pending);
  std::vector<std::vector<Rows>> arrived = exchange.receive(pending);
  ranks_.wait(pending);
  std::vector<LaneRange> lanes;
  for (const Source& source : sources) lanes.push_back(source.lanes);
  for (const Param* const table : tables) {
    std::vector<RowGrads> grads;
    for (std::vector<Rows>& of_source : arrived) {
      Rows& rows = of_source[static_cast<size_t>(table->table)];
      grads.push_back(rows.rows.empty() ? RowGrads() : RowGrads(std::move(rows.rows), std::move(rows.values)));
    }
    tree.finish(lanes, [&](size_t left, size_t right) { grads[left].add(std::move(grads[right])); });
    params_.row_grads(*table).add(std::move(grads.front()));
  }
  for (Lanes::Node& node : nodes)
    for (RowGrads& table : node.grads->tables()) table.clear();
}

void RankGradients::update(const std::function<void()>& update) {
  std::vector<std::vector<int64_t>> rows;
  for (const Param* const table : tables_of(params_)) rows.push_back(params_.row_grads(*table).rows());
  update();
  const ProfileSpan span("weights between ranks", Pass::none);
  gather_dense();
  gather_rows(rows);
}

/// Sends all ranks the updated rows of the tables. `rows`: those of this rank, by table.
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

}  // namespace capstan
