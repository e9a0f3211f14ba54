// The forward pass: a unit is a tile of queries of one piece and head, and the units are taken with the longest first.
// A unit keeps everything but its output in the work memory of its thread.
#include "nn/systems/quadratic/tiles.hpp"

#include <algorithm>

#include "core/base/sizes.hpp"
#include "core/kernels/kernels.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/gemm.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

constexpr double log2_e = 1.442695040888963407359924681001892137;

}  // namespace

AttentionTiles::AttentionTiles(const AttentionLayout& layout, const AttentionInputs& inputs)
    : layout_(layout), inputs_(inputs) {
  cut_pieces();
  layout_.tile = std::clamp<int64_t>(longest_, 1, layout_.tile);
  column_stride_ = round_up(layout_.tile, kernels::attention_column_granule());
  if (!inputs_.bias.empty()) prepare_bias();
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
}

AttentionTiles::Work AttentionTiles::work(bool backward) {
  int64_t size = 0;
  return carve(work_.mutable_data() + thread_index() * work_.dim(1), backward, size);
}

AttentionTiles::Queries AttentionTiles::queries(const Piece& piece, int64_t head, int64_t tile) const {
  const int64_t begin = piece.past + tile * layout_.tile, count = std::min(layout_.tile, piece.length - begin);
  return {&piece, head, begin, count, round_up(count, kernels::attention_column_granule())};
}

const real* AttentionTiles::keys(const Queries& queries, const Block& block) const {
  return inputs_.k.data + (queries.piece->key + block.begin) * inputs_.k.stride + queries.head * layout_.key_width;
}

const real* AttentionTiles::values(const Queries& queries, const Block& block) const {
  return inputs_.v.data + (queries.piece->key + block.begin) * inputs_.v.stride + queries.head * layout_.value_width;
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
}

void AttentionTiles::form_logits(const Queries& queries, const Block& block, const Work& work) const {
  const real* const k = keys(queries, block);
  for_each_slice(layout_.key_width, [&](int64_t z, int64_t width) {
    gemm(block.count, queries.columns - block.column, width, {k + z, inputs_.k.stride},
         {work.q_columns + z * column_stride_ + block.column, column_stride_}, work.logits + block.column,
         column_stride_, 1, z > 0 ? 1 : 0);
  });
}

void AttentionTiles::drop(const Queries& queries, const Block& block, real* values) const {
  const DropoutOptions& options = layout_.options.dropout;
  if (options.rate == 0) return;
  const int64_t length = layout_.segments.length(), row = queries.piece->token / length,
                begin = queries.piece->token % length;
  const uint64_t key = philox_key(head_key(options.key, queries.head));
  const auto word = [](int64_t value) { return static_cast<uint32_t>(value); };
  const kernels::DropoutBlock place{{static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)},
                                    static_cast<uint32_t>(options.examples[row]),
                                    static_cast<uint32_t>(options.step),
                                    word(begin + block.begin),
                                    word(begin + queries.begin + block.column),
                                    block.count,
                                    queries.count - block.column,
                                    column_stride_};
  const DropoutRate rate = dropout_rate(options.rate);
  kernels::dropout_block(values + block.column, place, rate.threshold, rate.scale);
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
    drop(queries, block, work.logits);
    const real* const v = values(queries, block);
    for_each_slice(layout_.value_width, [&](int64_t e, int64_t width) {
      gemm(width, queries.columns - column, block.count, {v + e, inputs_.v.stride, Transpose::yes},
           {work.logits + column, column_stride_}, work.sums + e * column_stride_ + column, column_stride_, 1,
           block.first ? 0 : 1);
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
