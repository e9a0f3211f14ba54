// RankGradients: tables of n-grams, of which only rows that were read are sent.
#include <algorithm>

#include "core/kernels/elementwise.hpp"
#include "core/machine/profile.hpp"
#include "train/rank_steps/rank_gradients.hpp"

namespace capstan {
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

void RankGradients::update(const std::function<void()>& update) {
  std::vector<std::vector<int64_t>> rows;
  for (const Param* const table : tables_of(params_)) rows.push_back(params_.row_grads(*table).rows());
  update();
  const ProfileSpan span("weights between ranks", Pass::none);
  gather_dense();
  gather_rows(rows);
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

}  // namespace capstan
