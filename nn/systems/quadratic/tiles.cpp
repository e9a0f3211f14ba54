// The forward pass: a unit is a tile of queries of one piece and head, and the units are taken with the longest first.
// A unit keeps everything but its output in the work memory of its thread.
#include "nn/systems/quadratic/tiles.hpp"

#include <algorithm>

#include "core/base/sizes.hpp"
#include "core/machine/parallel.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

constexpr double log2_e = 1.442695040888963407359924681001892137;

}  // namespace

AttentionTiles::AttentionTiles(const AttentionLayout& layout, const AttentionInputs& inputs)
    : layout_(layout), inputs_(inputs) {
  cut_pieces();
  const bool bf16 = rounds_operands(layout_.options.bf16);
  if (layout_.tile == 0) layout_.tile = bf16 ? attention_bf16_tile_length : attention_tile_length;
  layout_.tile = std::clamp<int64_t>(longest_, 1, layout_.tile);
  column_stride_ = round_up(layout_.tile, kernels::attention_column_granule());
  if (!inputs_.bias.empty()) prepare_bias();
  if (!bf16) return;
  rounded_keys_ = rounded_rows(inputs_.k.data, inputs_.k.stride, tokens(), heads() * layout_.key_width);
  rounded_values_ = rounded_rows(inputs_.v.data, inputs_.v.stride, tokens(), heads() * layout_.value_width);
}

void AttentionTiles::cut_pieces() {
  const int64_t chunk = layout_.options.chunk, past = layout_.past;
  for (const Segments::Span& span : layout_.segments.spans()) {
    const int64_t token = span.row * layout_.segments.length() + span.begin;
    const int64_t key = layout_.key_rows > 0 ? span.row * layout_.key_rows : token;
    const int64_t length = past + span.length(), step = chunk > 0 ? chunk : length;
    for (int64_t begin = 0; begin < length; begin += step) {
      const int64_t without = begin == 0 ? past : 0;
      pieces_.push_back({token + begin + without - past, std::min(step, length - begin), key + begin, without});
      longest_ = std::max(longest_, pieces_.back().length);
    }
  }
}

void AttentionTiles::prepare_bias() {
  const int64_t lags = 2 * longest_ - 1, known = inputs_.bias.dim(1);
  const real base = static_cast<real>(softmax() ? log2_e : 1);
  // Columns after a tile's last query read past the largest lag.
  bias_ = Array::zeros(Shape{heads(), lags + kernels::attention_column_granule()});
  for (int64_t head = 0; head < heads(); ++head) {
    const real* const from = inputs_.bias.data() + head * known + (known - lags) / 2;
    real* const to = bias_.mutable_data() + head * bias_.dim(1);
    for (int64_t lag = 0; lag < lags; ++lag) to[lag] = base * from[lag];
  }
}

AttentionTiles::Work AttentionTiles::carve(real* memory, bool backward, int64_t& size) const {
  size = 0;
  const auto take = [&](int64_t count) {
    real* const taken = memory == nullptr ? nullptr : memory + size;
    size += round_up(count, 64 / static_cast<int64_t>(sizeof(real)));
    return taken;
  };
  const int64_t columns = column_stride_, z = layout_.key_width, e = layout_.value_width;
  Work work{};
  for (real** number :
       {&work.scale, &work.logit_scale, &work.output_scale, &work.maximum, &work.total, &work.decay, &work.shift})
    *number = take(columns);
  work.q_columns = take(z * columns);
  work.logits = take(layout_.tile * columns);
  work.sums = take((backward ? z : e) * columns);
  if (!backward) return work;
  work.q_rows = take(layout_.tile * z);
  work.dout_rows = take(layout_.tile * e);
  work.dout_columns = take(e * columns);
  work.dweights = take(layout_.tile * columns);
  return work;
}

void AttentionTiles::allocate_work(bool backward) {
  int64_t size = 0;
  carve(nullptr, backward, size);
  work_ = Array(Shape{team_size(), size});
  if (rounded_keys_.empty()) return;
  rounded_work_ = Bf16Array(work_.shape());
  twins_ = rounded_work_.mutable_data();
}

AttentionTiles::Work AttentionTiles::work(bool backward) {
  int64_t size = 0;
  return carve(work_.mutable_data() + thread_index() * work_.dim(1), backward, size);
}

AttentionTiles::Queries AttentionTiles::queries(const Piece& piece, int64_t head, int64_t tile) const {
  const int64_t begin = piece.past + tile * layout_.tile, count = std::min(layout_.tile, piece.length - begin);
  return {&piece, head, begin, count, round_up(count, kernels::attention_column_granule())};
}

Operand AttentionTiles::keys(const Queries& queries, const Block& block) const {
  const int64_t row = queries.piece->key + block.begin, column = queries.head * layout_.key_width,
                width = heads() * layout_.key_width;
  return {{inputs_.k.data + row * inputs_.k.stride + column, inputs_.k.stride},
          {in_bf16(queries, block) ? rounded_keys_.data() + row * width + column : nullptr, width}};
}

Operand AttentionTiles::values(const Queries& queries, const Block& block) const {
  const int64_t row = queries.piece->key + block.begin, column = queries.head * layout_.value_width,
                width = heads() * layout_.value_width;
  return {{inputs_.v.data + row * inputs_.v.stride + column, inputs_.v.stride},
          {in_bf16(queries, block) ? rounded_values_.data() + row * width + column : nullptr, width}};
}

void AttentionTiles::round_work(const real* rows, int64_t stride, int64_t count, int64_t width) const {
  if (rounded_work_.empty()) return;
  if (width == stride) return round_elements(rounded_twin(rows), rows, count * width);
  for (int64_t row = 0; row < count; ++row)
    round_elements(rounded_twin(rows + row * stride), rows + row * stride, width);
}

kernels::AttentionTile AttentionTiles::tile_of(const Queries& queries, const Block& block, const Work& work) const {
  const int64_t lag = queries.begin + block.column - block.begin;  // of the first column and key
  const real* const bias = bias_.empty() ? nullptr : bias_.data() + queries.head * bias_.dim(1) + longest_ - 1 + lag;
  return {work.logits + block.column,
          block.count,
          queries.columns - block.column,
          column_stride_,
          layout_.options.causal ? -lag : -block.count,
          bias};
}

void AttentionTiles::prepare(const Queries& queries, const Work& work) const {
  const AttentionOptions& options = layout_.options;
  const double base = softmax() ? log2_e : 1;
  for (int64_t i = 0; i < queries.count; ++i) {
    const double row_scale = options.row_scale.empty() ? 1 : options.row_scale[queries.token() + i];
    work.scale[i] = static_cast<real>(options.scale * row_scale);
    work.logit_scale[i] = static_cast<real>(options.scale * row_scale * base);
    work.output_scale[i] = options.output_scale.empty() ? 1 : options.output_scale[queries.token() + i];
  }
  kernels::attention_pack_transposed(
      inputs_.q.data + queries.token() * inputs_.q.stride + queries.head * layout_.key_width, inputs_.q.stride,
      queries.count, layout_.key_width, work.logit_scale, queries.columns, work.q_columns, column_stride_);
  round_work(work.q_columns, column_stride_, layout_.key_width, queries.columns);
}

void AttentionTiles::form_logits(const Queries& queries, const Block& block, const Work& work) const {
  const bool bf16 = in_bf16(queries, block);
  const Operand k = keys(queries, block), q = in_work(work.q_columns + block.column, column_stride_, bf16);
  for_each_slice(layout_.key_width, bf16, [&](int64_t z, int64_t width) {
    multiply(block.count, queries.columns - block.column, width, k.from(z), q.from(z * column_stride_),
             work.logits + block.column, column_stride_, z > 0);
  });
}

void AttentionTiles::forward_tile(const Queries& queries, const Work& work, real* output, real* statistics) const {
  prepare(queries, work);
  kernels::attention_clear({work.maximum, work.total, work.decay}, queries.columns);
  for_each_block(queries, [&](const Block& block) {
    form_logits(queries, block, work);
    const int64_t column = block.column;
    kernels::attention_tile_weights(layout_.options.kernel, tile_of(queries, block, work),
                                    {work.maximum + column, work.total + column, work.decay + column},
                                    block.first ? nullptr : work.sums + column, layout_.value_width);
    round_work(work.logits + column, column_stride_, block.count, queries.columns - column);
    const bool bf16 = in_bf16(queries, block);
    const Operand v = values(queries, block).transposed(),
                  weights = in_work(work.logits + column, column_stride_, bf16);
    for_each_slice(layout_.value_width, bf16, [&](int64_t e, int64_t width) {
      multiply(width, queries.columns - column, block.count, v.from(e), weights,
               work.sums + e * column_stride_ + column, column_stride_, !block.first);
    });
  });
  if (softmax()) {
    for (int64_t i = 0; i < queries.count; ++i) work.total[i] = 1 / work.total[i];
    if (statistics != nullptr) {
      real* const kept = statistics + queries.head * tokens() + queries.token();
      std::copy_n(work.maximum, queries.count, kept);
      std::copy_n(work.total, queries.count, kept + heads() * tokens());
    }
    for (int64_t i = 0; i < queries.count; ++i) work.output_scale[i] *= work.total[i];
  }
  const int64_t stride = heads() * layout_.value_width;
  kernels::attention_unpack_transposed(work.sums, column_stride_, queries.count, layout_.value_width, work.output_scale,
                                       output + queries.token() * stride + queries.head * layout_.value_width, stride);
}

void AttentionTiles::forward(real* output, real* statistics) {
  std::vector<Queries> units;
  for (const Piece& piece : pieces_)
    for (int64_t head = 0; head < heads(); ++head)
      for (int64_t tile = tiles(piece); tile-- > 0;) units.push_back(queries(piece, head, tile));  // longest first
  allocate_work(false);
  parallel_units(static_cast<int64_t>(units.size()), [&](int64_t unit) {
    forward_tile(units[static_cast<size_t>(unit)], work(false), output, statistics);
  });
}

}  // namespace capstan::CAPSTAN_PRECISION
