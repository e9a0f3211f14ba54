// Updates are kernels over pieces of the flat blocks (update.hpp). The norm is a sum over pieces of fixed size, added
// in their order, so that it does not depend on threads or ranks: tests/train/test_optimizer.cpp.
#include "train/optimizers/optimizer.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/kernels/optimizer.hpp"
#include "core/machine/parallel.hpp"
#include "core/machine/profile.hpp"

namespace capstan {
namespace {

/// Elements that a pass over all gradients visits: the dense ones, and those of rows with a gradient.
int64_t visited(const ParamStore& params, const std::vector<kernels::TableRows>& tables) {
  int64_t elements = params.dense_size();
  for (const kernels::TableRows& table : tables) elements += table.count * table.width;
  return elements;
}

/// Elements of a state that an update visits.
int64_t visited(const Update& update, const OptimizerState& state) {
  int64_t elements = 0;
  for_pieces(update, state, [&](const kernels::UpdateBlocks& blocks, int64_t, double) {
    elements += blocks.count;
    for (int64_t t = 0; t < blocks.table_count; ++t) elements += blocks.tables[t].count * blocks.tables[t].width;
  });
  return elements;
}

}  // namespace

Shares shares_for(const OptimizerConfig& config, const ParamStore& params, int ranks) {
  const bool whole = std::visit(
      [](const auto& chosen) {
        const std::vector<StateSpec> states = chosen.states();
        return std::any_of(states.begin(), states.end(), [](const StateSpec& spec) { return spec.whole_matrices; });
      },
      config);
  return Shares(params, whole, ranks);
}

Optimizer::Optimizer(const OptimizerConfig& config, const ParamStore& params, const std::vector<Elements>& owned)
    : config_(config) {
  check(params.finalized(), "optimizer: the parameter store is not finalized");
  const MemoryFor purpose("the optimizer's state");
  std::visit(
      [&](const auto& chosen) {
        for (const StateSpec& spec : chosen.states()) states_.emplace_back(spec, params, owned);
      },
      config_);
}

void Optimizer::step(ParamStore& params, double grad_scale, double lr, bool bf16) {
  const Update update{params, grad_scale, lr, ++steps_, rows_with_gradient(params), bf16};
  // Values, gradients (set to 0) and states are read and written.
  int64_t elements = 4 * visited(params, update.tables);
  for (const OptimizerState& state : states_) elements += 2 * visited(update, state);
  const ProfileSpan span("optimizer", Pass::none, elements * static_cast<int64_t>(sizeof(real)));
  std::visit([&](const auto& chosen) { chosen.update(update, states_); }, config_);
  for (RowGrads& table : params.grad_block().tables()) table.clear();
}

std::vector<double> squares_of_pieces(const ParamStore& params, const Shares& shares, int rank) {
  const std::vector<kernels::TableRows> tables = rows_with_gradient(params);
  const ProfileSpan span("gradient norm", Pass::none, visited(params, tables) * static_cast<int64_t>(sizeof(real)));
  const Shares::Span dense = shares.pieces_of(0, rank);
  std::vector<double> squares(dense.end - dense.begin);
  parallel_units(static_cast<int64_t>(squares.size()), [&](int64_t i) {
    const Elements& piece = shares.pieces(0)[dense.begin + static_cast<size_t>(i)];
    squares[static_cast<size_t>(i)] = kernels::sum_of_squares(params.grads() + piece.begin, piece.size());
  });
  for (size_t region = 1; region < shares.regions(); ++region) {
    const Shares::Span span_of_rank = shares.pieces_of(region, rank);
    const size_t first = squares.size();
    squares.resize(first + span_of_rank.end - span_of_rank.begin);
    if (first == squares.size()) continue;
    const kernels::TableRows& table = tables[region - 1];
    const Elements& first_piece = shares.pieces(region).front();
    // All pieces of a table have as many rows as the first one, but for the last.
    for (int64_t i = 0; i < table.count; ++i) {
      const auto piece = static_cast<size_t>(table.rows[i] * table.width / first_piece.size());
      squares[first + piece - span_of_rank.begin] += kernels::row_squares(table.grads + i * table.width, table.width);
    }
  }
  return squares;
}

double gradient_norm(const Shares& shares, const std::vector<std::vector<double>>& squares, double grad_scale) {
  std::vector<size_t> next(squares.size(), 0);
  double total = 0;
  for (size_t region = 0; region < shares.regions(); ++region) {
    double sum = 0;
    for (size_t rank = 0; rank < squares.size(); ++rank) {
      const Shares::Span span = shares.pieces_of(region, static_cast<int>(rank));
      for (size_t i = span.begin; i < span.end; ++i) sum += squares[rank][next[rank]++];
    }
    total += sum;
  }
  return std::abs(grad_scale) * std::sqrt(total);
}

double gradient_norm(const ParamStore& params, double grad_scale) {
  const Shares alone(params);
  return gradient_norm(alone, {squares_of_pieces(params, alone, 0)}, grad_scale);
}

double clip_factor(double norm, double limit) { return limit > 0 && norm > limit ? limit / norm : 1; }

bool has_fresh_tables(const ParamStore& params) {
  return std::any_of(params.params().begin(), params.params().end(),
                     [](const Param& param) { return param.options.fresh_each_epoch && !param.frozen; });
}

void empty_fresh_tables(ParamStore& params, Optimizer& optimizer) {
  for (const Param& param : params.params()) {
    if (!param.options.fresh_each_epoch || param.frozen) continue;
    std::fill_n(params.values() + param.offset, param.var.size(), real{0});
    for (OptimizerState& state : optimizer.states()) {
      const ParamPart<real> part = state.of(param);
      std::fill_n(part.values, part.size(), real{0});
    }
  }
}

}  // namespace capstan
