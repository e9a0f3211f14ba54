// The pullback of attention: per piece and head, tiles of queries from the last to the first, each against all its
// blocks of keys, whose weights are formed again from the saved maximum and sum.
#include <algorithm>
#include <limits>

#include "core/machine/parallel.hpp"
#include "nn/systems/quadratic/tiles.hpp"

namespace capstan::CAPSTAN_PRECISION {

// With P = softmax or kernel values, c = output_scale and dP_ij = c_i dO_i . v_j:
//   softmax  dL_ij = P_ij (dP_ij - dO_i . O_i),  otherwise  dL_ij = f'(logit_ij) dP_ij;
//   dv_j = sum_i P_ij c_i dO_i,  dk_j = sum_i dL_ij s r_i q_i,  dq_i = s r_i sum_j dL_ij k_j
// with s = scale and r = row_scale.
// All factors of a query, 1 / sum of its weights among them, go into the packed rows of dO and q.
void AttentionTiles::prepare_backward(const Queries& queries, const Work& work, const AttentionResults& results) const {
  prepare(queries, work);
  const int64_t z = layout_.key_width, e = layout_.value_width, stride = heads() * e,
                first = queries.token() * stride + queries.head * e;
  const real* const q = inputs_.q.data + queries.token() * inputs_.q.stride + queries.head * z;
  if (softmax()) {
    const real* const maximum = results.statistics + queries.head * tokens() + queries.token();
    const real* const inverse = maximum + heads() * tokens();
    std::copy_n(maximum, queries.count, work.maximum);
    // Columns after the last query have dO = 0, so their weights must not be infinite.
    std::fill(work.maximum + queries.count, work.maximum + queries.columns, std::numeric_limits<real>::max());
    std::fill(work.shift + queries.count, work.shift + queries.columns, real{0});
    kernels::attention_row_products(results.doutput + first, stride, results.output + first, stride, queries.count, e,
                                    inverse, work.shift);
    for (int64_t i = 0; i < queries.count; ++i) work.output_scale[i] *= inverse[i];
  }
  kernels::attention_pack(q, inputs_.q.stride, queries.count, z, work.scale, work.q_rows);
  kernels::attention_pack(results.doutput + first, stride, queries.count, e, work.output_scale, work.dout_rows);
  kernels::attention_pack_transposed(results.doutput + first, stride, queries.count, e, work.output_scale,
                                     queries.columns, work.dout_columns, column_stride_);
  round_work(work.q_rows, z, queries.count, z);
  round_work(work.dout_rows, e, queries.count, e);
  round_work(work.dout_columns, column_stride_, e, queries.columns);
}

void AttentionTiles::backward_block(const Queries& queries, const Block& block, const Work& work,
                                    const BackwardUnit& unit, bool add) const {
  form_logits(queries, block, work);
  const int64_t z = layout_.key_width, e = layout_.value_width, stride = column_stride_, column = block.column;
  const int64_t columns = queries.columns - column, rows = queries.count - column;
  const int64_t token = queries.piece->token + block.begin;
  const bool bf16 = in_bf16(queries, block);
  real* const dlogits = work.dweights + column;
  const Operand k = keys(queries, block), v = values(queries, block);
  const Operand dout_columns = in_work(work.dout_columns + column, stride, bf16),
                dout_rows = in_work(work.dout_rows + column * e, e, bf16),
                q_rows = in_work(work.q_rows + column * z, z, bf16);
  for_each_slice(e, bf16, [&](int64_t from, int64_t width) {
    multiply(block.count, columns, width, v.from(from), dout_columns.from(from * stride), dlogits, stride, from > 0);
  });
  const kernels::AttentionTile tile = tile_of(queries, block, work);
  kernels::attention_tile_weights_backward(layout_.options.kernel, tile, dlogits, work.maximum + column,
                                           work.shift + column);
  if (unit.dbias != nullptr)
    kernels::attention_add_diagonals(tile, dlogits, unit.dbias + queries.begin + column - block.begin);
  round_work(work.logits + column, stride, block.count, columns);
  round_work(dlogits, stride, block.count, columns);
  const Operand weights = in_work(work.logits + column, stride, bf16), slopes = in_work(dlogits, stride, bf16);
  for_each_slice(e, bf16, [&](int64_t from, int64_t width) {
    multiply(block.count, width, rows, weights, dout_rows.from(from),
             unit.dv.data + token * unit.dv.stride + queries.head * e + from, unit.dv.stride, add);
  });
  for_each_slice(z, bf16, [&](int64_t from, int64_t width) {
    multiply(block.count, width, rows, slopes, q_rows.from(from),
             unit.dk.data + token * unit.dk.stride + queries.head * z + from, unit.dk.stride, add);
    multiply(width, columns, block.count, k.from(from).transposed(), slopes, work.sums + from * stride + column, stride,
             !block.first);
  });
}

void AttentionTiles::backward_unit(const BackwardUnit& unit, const Work& work, const AttentionResults& results) const {
  const int64_t z = layout_.key_width, e = layout_.value_width;
  int64_t written = 0;  // keys whose gradients hold something
  // From the last tile, which meets all keys, to the first.
  for (int64_t tile = tiles(*unit.piece); tile-- > 0;) {
    // The order of the parts alternates, so that each part gets long and short tiles of a causal piece.
    const int64_t round = tile / unit.parts, place = tile % unit.parts;
    if ((round % 2 == 0 ? place : unit.parts - 1 - place) != unit.part) continue;
    const Queries of_tile = queries(*unit.piece, unit.head, tile);
    prepare_backward(of_tile, work, results);
    const bool first = written == 0;
    for_each_block(of_tile, [&](const Block& block) {
      backward_block(of_tile, block, work, unit, !first);
      written = std::max(written, block.begin + block.count);
    });
    kernels::attention_unpack_transposed(work.sums, column_stride_, of_tile.count, z, work.scale,
                                         unit.dq.data + of_tile.token() * unit.dq.stride + unit.head * z,
                                         unit.dq.stride);
  }
  for (int64_t i = written; i < unit.piece->length; ++i) {
    const int64_t token = unit.piece->token + i;
    std::fill_n(unit.dk.data + token * unit.dk.stride + unit.head * z, z, real{0});
    std::fill_n(unit.dv.data + token * unit.dv.stride + unit.head * e, e, real{0});
  }
}

/// Two where pieces and heads alone are few units of work to share out.
int64_t AttentionTiles::parts_per_unit() const {
  if (in_parallel()) return 1;
  double total = 0, largest = 0;
  for (const Piece& piece : pieces_) {
    const double cost = static_cast<double>(piece.length) * static_cast<double>(piece.length);
    total += cost * static_cast<double>(heads());
    largest = std::max(largest, cost);
  }
  constexpr double enough_units = 8;
  return largest * enough_units > total ? 2 : 1;
}

void AttentionTiles::backward(const AttentionResults& results, const AttentionGradients& gradients) {
  const int64_t parts = parts_per_unit(), keys_width = heads() * layout_.key_width,
                width = keys_width + heads() * layout_.value_width;
  Array partial(Shape{parts - 1, tokens(), width});  // dk | dv of all parts but the first
  real* const partial_data = parts > 1 ? partial.mutable_data() : nullptr;
  std::vector<BackwardUnit> units;
  for (const Piece& piece : pieces_) {
    for (int64_t head = 0; head < heads(); ++head) {
      units.push_back({&piece, head, 0, parts, gradients.dq, gradients.dk, gradients.dv, nullptr});
      for (int64_t part = 1; part < parts; ++part) {
        real* const mine = partial_data + (part - 1) * tokens() * width;
        units.push_back({&piece, head, part, parts, gradients.dq, {mine, width}, {mine + keys_width, width}, nullptr});
      }
    }
  }
  Array dbias;  // of every unit
  if (gradients.dbias != nullptr) dbias = give_bias_gradients(units);
  allocate_work(true);
  parallel_units(static_cast<int64_t>(units.size()),
                 [&](int64_t i) { backward_unit(units[static_cast<size_t>(i)], work(true), results); });
  if (parts > 1) add_parts(partial, gradients);
  if (gradients.dbias != nullptr) add_bias_gradients(units, gradients.dbias);
}

Array AttentionTiles::give_bias_gradients(std::vector<BackwardUnit>& units) const {
  // Lags of a piece, and columns after its last query.
  const auto room = [](const BackwardUnit& unit) {
    return 2 * unit.piece->length - 1 + kernels::attention_column_granule();
  };
  int64_t size = 0;
  for (const BackwardUnit& unit : units) size += room(unit);
  Array gradients = Array::zeros(Shape{size});
  real* next = gradients.mutable_data();
  for (BackwardUnit& unit : units) {
    unit.dbias = next + unit.piece->length - 1;
    next += room(unit);
  }
  return gradients;
}

void AttentionTiles::add_bias_gradients(const std::vector<BackwardUnit>& units, real* dbias) const {
  const int64_t known = inputs_.bias.dim(1);
  for (const BackwardUnit& unit : units) {
    real* const to = dbias + unit.head * known + known / 2;  // of lag 0
    for (int64_t lag = 1 - unit.piece->length; lag < unit.piece->length; ++lag) to[lag] += unit.dbias[lag];
  }
}

void AttentionTiles::add_parts(const Array& partial, const AttentionGradients& gradients) const {
  const int64_t keys_width = heads() * layout_.key_width, values_width = heads() * layout_.value_width;
  parallel_each(tokens(), 64, [&](int64_t token) {
    if (layout_.segments.ids()[token] == 0) return;
    real *const dk = gradients.dk.data + token * gradients.dk.stride, *const dv = gradients.dv.data +
                                                                                  token * gradients.dv.stride;
    for (int64_t part = 0; part < partial.dim(0); ++part) {
      const real* const part_row = partial.data() + (part * tokens() + token) * (keys_width + values_width);
      for (int64_t i = 0; i < keys_width; ++i) dk[i] += part_row[i];
      for (int64_t i = 0; i < values_width; ++i) dv[i] += part_row[keys_width + i];
    }
  });
}

}  // namespace capstan::CAPSTAN_PRECISION
