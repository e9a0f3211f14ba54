// The engine of attention. Internal to the attention ops.
//
// What sees each other - a document, or one chunk of it - is a piece. Its queries are cut into tiles, and each tile
// meets the keys it may see in blocks: the block's logits are one small matrix product, become weights, and meet the
// values in another. Blocks above the diagonal are never formed, and those on it are half as long. Everything local to
// a tile is stored transposed, a query per column: then the strided rows of keys and values are the left operand of
// every product, which needs no packing, and the values of a query fill one lane of a register. The length of tiles
// changes rounding, the number of threads does not: whether a unit of the pullback is cut in two (parts_per_unit)
// depends on the shape. tests/nn/systems/quadratic/test_op.cpp.
#pragma once

#include <vector>

#include "core/array/segments.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/rounded.hpp"
#include "nn/systems/quadratic/kernels/tile.hpp"
#include "nn/systems/quadratic/options.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Rows of tokens inside a wider array: token n of the B T at data + n * stride, heads one after another.
template <class Number>
struct TokenRows {
  Number* data;
  int64_t stride;
};

/// What the tokens, heads and tiles of a call are.
struct AttentionLayout {
  Segments segments;
  AttentionOptions options;
  int64_t key_width, value_width;  // of one head: Z, E
  int64_t tile;                    // queries of a tile, keys of a block; 0: chosen
  /// Keys in front of the first query of every sequence, which count as tokens of its only document, and rows of k and
  /// v from sequence to sequence. Forward only.
  int64_t past = 0, key_rows = 0;
};

/// Square tiles of this size make products that run at the machine's rate from the first-level cache, without packing;
/// longer ones would compute more above the diagonal.
constexpr int64_t attention_tile_length = 64;
/// Products of bf16 run faster in larger pieces.
constexpr int64_t attention_bf16_tile_length = 128;

/// The operands of a call, in the arrays that hold them.
struct AttentionInputs {
  TokenRows<const real> q, k, v;
  Array bias;  // (H, 2N - 1); empty: none
};

/// What the pullback needs besides the inputs. statistics: largest logit and 1 / sum of the weights relative to it, (2,
/// H, B T). Both null but for softmax.
struct AttentionResults {
  const real *output, *statistics, *doutput;
};

/// Where the pullback writes.
struct AttentionGradients {
  TokenRows<real> dq, dk, dv;  // written for every token but those of padding
  real* dbias;                 // (H, 2N - 1), added to; null: not wanted
};

/// The forward pass, or the pullback, of one call of an op: made for it, used once.
class AttentionTiles {
 public:
  AttentionTiles(const AttentionLayout& layout, const AttentionInputs& inputs);

  /// Writes the rows of `output` (B, T, H E) but those of padding, and the statistics unless they are null.
  void forward(real* output, real* statistics);
  void backward(const AttentionResults& results, const AttentionGradients& gradients);

 private:
  /// Tokens that see each other.
  struct Piece {
    int64_t token, length;  // the first of the B T, and how many, past ones included
    int64_t key, past;      // row of the first key; how many of the tokens have no query
  };
  /// A tile of queries of one piece and head. Positions count from the piece's start.
  struct Queries {
    const Piece* piece;
    int64_t head, begin, count, columns;
    int64_t token() const { return piece->token + begin - piece->past; }
  };
  /// Keys processed together for the columns of a tile of queries, starting at `column`.
  struct Block {
    int64_t begin, count, column;
    bool first;  // of its tile
  };
  /// Work memory of one thread. Everything in columns has the same stride; the last line is for the pullback only.
  struct Work {
    real *scale, *logit_scale, *output_scale, *maximum, *total, *decay, *shift;  // a value per query
    real *q_columns, *logits, *sums;                     // (Z, columns), (keys, columns), (Z or E, columns)
    real *q_rows, *dout_rows, *dout_columns, *dweights;  // (queries, Z), (queries, E), (E, columns), (keys, columns)
  };
  /// Every `parts`-th tile of queries of one piece and head, and where its share of the gradients goes.
  struct BackwardUnit {
    const Piece* piece;
    int64_t head, part, parts;
    TokenRows<real> dq, dk, dv;
    real* dbias;  // of lag 0; null: not wanted
  };

  bool softmax() const { return layout_.options.kernel == AttentionKernel::softmax; }
  int64_t heads() const { return layout_.options.heads; }
  int64_t tokens() const { return layout_.segments.ids().size(); }
  int64_t tiles(const Piece& piece) const { return (piece.length - piece.past + layout_.tile - 1) / layout_.tile; }
  /// Fills pieces_: documents, or their chunks.
  void cut_pieces();
  /// Copies the lags of the bias that are needed, in the base of the logits.
  void prepare_bias();
  void allocate_work(bool backward);
  /// Lays a Work out in `memory`; null: only counts its elements, in `size`.
  Work carve(real* memory, bool backward, int64_t& size) const;
  /// The work memory of the running thread.
  Work work(bool backward);

  Queries queries(const Piece& piece, int64_t head, int64_t tile) const;
  /// body(block) for all keys that the queries see, in order.
  template <class Body>
  void for_each_block(const Queries& queries, const Body& body) const;
  kernels::AttentionTile tile_of(const Queries& queries, const Block& block, const Work& work) const;
  /// Are the products of the block in bf16? Only sizes of 16, so that oneDNN meets few shapes, whatever the texts.
  bool in_bf16(const Queries& queries, const Block& block) const {
    return !rounded_keys_.empty() && block.count % 16 == 0 && queries.count % 16 == 0;
  }
  Operand keys(const Queries& queries, const Block& block) const;
  Operand values(const Queries& queries, const Block& block) const;
  /// Rows of work memory; rounded: those that round_work() has written.
  Operand in_work(const real* rows, int64_t stride, bool bf16) const {
    return {{rows, stride}, {bf16 ? rounded_twin(rows) : nullptr, stride}};
  }
  Bf16* rounded_twin(const real* in_work) const { return twins_ + (in_work - work_.data()); }
  /// Rounds (count, width) elements of work memory into their twins; nothing where all products are in floats.
  void round_work(const real* rows, int64_t stride, int64_t count, int64_t width) const;
  /// Writes the factors of the queries, and the queries as columns.
  void prepare(const Queries& queries, const Work& work) const;
  void form_logits(const Queries& queries, const Block& block, const Work& work) const;
  void forward_tile(const Queries& queries, const Work& work, real* output, real* statistics) const;

  int64_t parts_per_unit() const;
  void prepare_backward(const Queries& queries, const Work& work, const AttentionResults& results) const;
  /// `add`: to what dk and dv of the block's keys hold already.
  void backward_block(const Queries& queries, const Block& block, const Work& work, const BackwardUnit& unit,
                      bool add) const;
  void backward_unit(const BackwardUnit& unit, const Work& work, const AttentionResults& results) const;
  /// Adds the gradients of keys and values that parts but the first made.
  void add_parts(const Array& partial, const AttentionGradients& gradients) const;
  /// Room for every unit's gradient of the bias.
  Array give_bias_gradients(std::vector<BackwardUnit>& units) const;
  void add_bias_gradients(const std::vector<BackwardUnit>& units, real* dbias) const;

  AttentionLayout layout_;
  AttentionInputs inputs_;
  std::vector<Piece> pieces_;
  int64_t longest_ = 0;        // tokens of the longest piece
  int64_t column_stride_ = 0;  // stride of everything in columns
  Array bias_;                 // (H, lags): of lag 1 - longest and on, in the base of the logits
  FixedThreads threads_;
  Array work_;  // (threads, elements)
  // Where products are in bf16: k and v, (B T, H Z) and (B T, H E), and a twin of each element of work_. Else empty.
  Bf16Array rounded_keys_, rounded_values_, rounded_work_;
  Bf16* twins_ = nullptr;  // the elements of rounded_work_
};

/// Products of floats are cut along a head's width into slices of this: small ones run fastest. Those of bf16 are not.
constexpr int64_t attention_slice = 128;

template <class Body>
void for_each_slice(int64_t width, bool bf16, const Body& body) {
  const int64_t slice = bf16 ? width : attention_slice;
  for (int64_t begin = 0; begin < width; begin += slice) body(begin, begin + slice < width ? slice : width - begin);
}

template <class Body>
void AttentionTiles::for_each_block(const Queries& queries, const Body& body) const {
  const int64_t tile = layout_.tile, end = layout_.options.causal ? queries.begin : queries.piece->length;
  for (int64_t begin = 0; begin < end; begin += tile)
    body(Block{begin, begin + tile < end ? tile : end - begin, 0, begin == 0});
  if (!layout_.options.causal) return;
  const int64_t step = (tile + 1) / 2, granule = kernels::attention_column_granule();
  for (int64_t key = 0; key < queries.count; key += step)
    body(Block{queries.begin + key, key + step < queries.count ? step : queries.count - key, key / granule * granule,
               queries.begin + key == 0});
}

}  // namespace capstan::CAPSTAN_PRECISION
