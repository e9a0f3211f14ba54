// The engine of aft_factorised, aft_dense and aft_conv. Internal to the AFT ops.
//
// Positions of a document are cut into tiles of targets. For each tile the weights e^(w_ts - max_s w_ts) form one small
// dense matrix, shared by all documents and channels (of a head); its product with the rows [E V | E], E = e^(K - m),
// gives numerators and denominators. Sources outside the window have w = 0 whatever the target, so everything before
// the window, and everything after it, is one extra source each: a carry, the state (m, D, R) of aft_scan. Without a
// window all sources are taken one by one.
//
// The reference m is a maximum over the sources of the tile, later ones of a causal tile included; where that makes a
// denominator vanish the row is computed exactly, with its own maximum ("extreme keys" in
// tests/nn/systems/aft/test_op_invariants.cpp). The pullback is in tiles_backward.cpp.
#pragma once

#include <algorithm>
#include <vector>

#include "core/array/segments.hpp"
#include "core/machine/parallel.hpp"
#include "nn/systems/aft/bias.hpp"
#include "nn/systems/aft/kernels/tile.hpp"
#include "nn/systems/aft/past.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// What an op's tokens, channels and tiles are.
struct AftLayout {
  Segments segments;
  int64_t width = 0;  // D
  int64_t heads = 0;  // keys per token when they are shared by the channels of a head; 0: one key per channel
  bool causal = false;
  int64_t window = 0;  // 0: no limit
  int64_t tile = 0;    // targets per tile
  AftPast past = {};   // forward only

  int64_t keys() const { return heads > 0 ? heads : width; }
  int64_t stride() const { return 2 * width + keys(); }  // of q|k|v
};

/// The forward pass, or the pullback, of one call of an op: made for it, used once.
class AftTiles {
 public:
  AftTiles(const Array& qkv, const AftLayout& layout, AftBias& bias);

  /// y, average: (B, T, D); denominator: (B, T, keys). All rows are written, those of padding with 0.
  void forward(real* y, real* average, real* denominator);
  /// Writes dqkv (B, T, stride) and hands the gradient of w to the bias.
  void backward(const real* dy, const real* average, const real* denominator, real* dqkv);

 private:
  /// A run of value channels with their keys, and the place of its columns among those of all groups.
  struct Group {
    kernels::AftGroup shape;
    int64_t head, channel, key, column;
  };
  /// One document's share of one tile for one group.
  struct Unit {
    const AftTile* tile;
    int64_t tile_index, span, length;  // length of the document
    int64_t row;                       // of its first token among the B * T
    const Group* group;
    int64_t targets, sources;
    bool prefix, suffix;  // whether there are sources before (after) the window
    int64_t first_column() const { return prefix ? 0 : 1; }
    /// Columns of the first `count` sources and of what is outside of the window.
    int64_t columns(int64_t count) const { return count + (prefix ? 1 : 0) + (suffix ? 1 : 0); }
    AftTile seen() const { return {tile->t0, tile->t0 + targets, tile->s0, tile->s0 + sources}; }
  };
  /// Consecutive tiles [begin, end) that share their weights: of one form under a shift-invariant bias, else one tile.
  struct Run {
    int64_t begin, end;
  };
  /// Work memory of one thread or part.
  struct Work {
    real *reference, *exp_rows, *rows, *gradient_rows, *dlogits;
  };

  /// Fills tiles_ and runs_ for the longest document; a shorter one uses the first of them.
  void cut_tiles();
  /// Are there sources in front of those that the tile takes one by one?
  bool has_prefix(const AftTile& tile) const { return tile.s0 > 0 || layout_.past.position > 0; }
  bool same_weights(const AftTile& a, const AftTile& b) const;
  /// Fills groups_: heads, or runs of channels that make products wide enough.
  void cut_groups();
  int64_t unit_count() const { return static_cast<int64_t>(layout_.segments.spans().size() * groups_.size()); }
  /// False when the document ends before the tile.
  bool make_unit(int64_t index, int64_t tile_index, Unit& unit) const;
  /// q|k|v of the unit's channels, from the token at `position` of its document on.
  kernels::AftInput input(const Unit& unit, int64_t position) const;
  /// The work memory with this number, of those that allocate_work() made.
  Work work(int64_t index);
  void allocate_work(bool backward, int64_t count);
  /// The number of parts of a pullback, each with its own gradient of w.
  int64_t parts() const;

  /// Computes the carries of every tile: what is in front of its window and, bidirectional, what comes after it.
  void scan_carries();
  /// The state in front of the first row.
  void begin_carry(const Unit& unit, const kernels::AftState& state) const;
  kernels::AftState prefix(const Unit& unit) const { return carry(prefixes_, unit); }
  kernels::AftState suffix(const Unit& unit) const { return carry(suffixes_, unit); }
  kernels::AftState carry(real* states, const Unit& unit) const;

  /// body(strip) for pieces of a tile's targets, with the sources that are not later than all of them.
  template <class Body>
  void for_each_strip(const AftTile& tile, const Body& body) const;
  /// Fills logits_ and weights_ for a tile, and so for all tiles of its run.
  void prepare_weights(const AftTile& tile);
  /// The weights of the unit's head, from the first column that the unit has on.
  const real* weights(const Unit& unit) const;
  /// Writes the reference and the rows [E V | E] of the unit's sources and carries.
  void pack(const Unit& unit, const Work& work) const;
  void forward_unit(const Unit& unit, const Work& work, real* y, real* average, real* denominator) const;
  /// Normalised weights of all sources of target `t` for one key, by the row's own maximum; returns their number. After
  /// them, where there is one, that of the state in front of the first row.
  int64_t exact_weights(const Unit& unit, int64_t t, int64_t key, real* weights) const;
  /// Computes the rows of the unit whose denominator is 0.
  void exact_rows(const Unit& unit, real* y, real* average, const real* denominator) const;

  struct Gradients {
    const real *dy, *average, *denominator;
    real* dqkv;
  };
  void backward_run(const Run& run, const Gradients& g);
  /// Adds to the work's gradient of w for the heads that have begun, and overwrites that of the others; that of rows
  /// which were computed exactly goes to `exact_dlogits`, made when needed.
  void backward_unit(const Unit& unit, const Work& work, const Gradients& g, Array& exact_dlogits,
                     std::vector<bool>& begun);
  void source_gradients(const Unit& unit, const Work& work) const;
  void clear_dlogits(const AftTile& tile, const Work& work, int64_t head) const;
  void exact_rows_backward(const Unit& unit, const Gradients& g, real* exact_dlogits) const;
  /// Keeps the gradient row of a carry for scatter_carries().
  void keep_carry_gradient(const Unit& unit, const Work& work, bool prefix);
  /// Hands the gradient of the run's weights to the bias.
  void finish_run(const AftTile& tile, const std::vector<Array>& exact);
  /// Adds the gradients of all carries to the tokens that they are made of.
  void scatter_carries(const Unit& unit, const Work& work, const Gradients& g, bool prefix) const;
  kernels::AftGradient gradient(const Unit& unit, int64_t position, real* dqkv) const;

  Array qkv_;
  AftLayout layout_;
  AftBias& bias_;
  std::vector<AftTile> tiles_;
  std::vector<Run> runs_;
  std::vector<Group> groups_;
  int64_t max_sources_ = 0, weight_stride_ = 0, max_columns_ = 0, total_columns_ = 0;
  Array logits_, weights_;  // (heads, tile, weight_stride): columns prefix | sources | suffix
  Array carries_;           // (prefixes, suffixes; documents; tiles; 2 keys + D): maximum | weight | average
  real *prefixes_ = nullptr, *suffixes_ = nullptr;
  /// (documents, tiles, total_columns): rows [G_v | G_k] relative to the carry's maximum.
  Array prefix_grads_, suffix_grads_;
  FixedThreads threads_;
  Array work_;
  int64_t work_stride_ = 0;
};

/// Products of so few targets run at full speed, and multiply few zeros above the diagonal.
constexpr int64_t aft_strip_targets = 64;

template <class Body>
void AftTiles::for_each_strip(const AftTile& tile, const Body& body) const {
  if (!layout_.causal) return body(tile);
  for (int64_t begin = tile.t0; begin < tile.t1; begin += aft_strip_targets) {
    const int64_t end = std::min(begin + aft_strip_targets, tile.t1);
    body(AftTile{begin, end, tile.s0, end});
  }
}

}  // namespace capstan::CAPSTAN_PRECISION
