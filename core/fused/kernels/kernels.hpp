// The loops of the fused ops over pointers, rows shared out to the threads: no shapes, no tape. Results depend neither
// on the number of threads nor on the width of registers (tests/core/fused, tests/models/portable_levels.cpp).
#pragma once

#include <cstdint>

#include "core/base/real.hpp"
#include "core/kernels/column_sums.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

// Normalisation of the rows of a matrix.

/// n = (x - mean x) / sqrt(var x + eps) when centred, else x / sqrt(mean x^2 + eps).
enum class NormForm { centred, rms };

/// What both ways of a norm over rows of `columns` elements share.
/// gain is (columns) or null for 1; `scale` multiplies all.
struct NormPass {
  NormForm kind;
  int64_t rows, columns;
  const real* gain = nullptr;
  real scale = 1;
  double eps = 0;
};

/// y = n * gain * scale + bias, bias (columns) or null; y may be x. mean and rstd (rows) are kept for the way back;
/// mean is null unless centred.
void norm_forward(const NormPass& pass, const real* bias, const real* x, real* y, real* mean, real* rstd);

/// dx (may be dy; null: not wanted), column sums of dy * n into dgain and of dy into dbias, and row sums of dy * n into
/// row_dots (rows) unless null.
void norm_backward(const NormPass& pass, const real* x, const real* mean, const real* rstd, const real* dy, real* dx,
                   ColumnSums dgain, ColumnSums dbias, real* row_dots);

// Cross-entropy of the rows of a matrix of logits: of one class each, or of labels that a row has or has not.

/// A matrix of logits, the class that each row should have, and how the loss counts.
struct CrossEntropyPass {
  int64_t rows, columns;   // logits: (rows, columns)
  const int32_t* targets;  // (rows), each in [0, columns) or `ignored`
  int32_t ignored;
  real smoothing;                       // s: the target distribution is (1 - s) * one-hot + s / columns
  const real* class_weights = nullptr;  // (columns): loss and gradient of a row are times its target's; null: 1
};

/// loss (rows): -sum over j of target_j * log softmax(logits)_j; 0 for ignored rows. Of every row its largest logit
/// goes to `largest` and 1 / sum of e^(logit - largest) to `inverse`, unless these are null.
void cross_entropy_forward(const CrossEntropyPass& pass, const real* logits, real* loss, real* largest, real* inverse);

/// dlogits = factor * (softmax(logits) - target distribution), 0 in ignored rows; dlogits may be logits.
void cross_entropy_backward(const CrossEntropyPass& pass, const real* logits, const real* largest, const real* inverse,
                            real factor, real* dlogits);

/// Both in one: writes the losses and turns the logits into their gradients of the summed loss.
void cross_entropy_in_place(const CrossEntropyPass& pass, real* logits, real* loss);

/// Rows that are not ignored and whose first highest logit is the target's.
int64_t count_correct(const CrossEntropyPass& pass, const real* logits);

/// A matrix of logits, the labels that each row should have, and how the loss counts.
struct SigmoidCrossEntropyPass {
  int64_t rows, columns;      // logits: (rows, columns)
  const real* targets;        // (rows, columns), t in [0, 1]
  const real* label_weights;  // (columns), w; null: 1
};

/// loss (rows): the sum over the columns of -w t log p - (1 - t) log(1 - p), with p = 1 / (1 + e^-logit).
void sigmoid_cross_entropy_forward(const SigmoidCrossEntropyPass& pass, const real* logits, real* loss);

/// dlogits = factor * ((1 - t) p - w t (1 - p)); dlogits may be logits.
void sigmoid_cross_entropy_backward(const SigmoidCrossEntropyPass& pass, const real* logits, real factor,
                                    real* dlogits);

// Sums of table rows. No result depends on the number of threads.

/// out[b] = factors[b] * sum of table[ids[i]] over i in [offsets[b], offsets[b + 1]);
/// table: (rows, width), out: (bags, width)
void bag_sums(real* out, const real* table, const int32_t* ids, const int64_t* offsets, const real* factors,
              int64_t bags, int64_t width);

/// One row of a table in a bag: places of a row are adjacent.
struct BagPlace {
  int32_t row, bag;
};
/// out[r] = sum of factors[bag] * in[bag] over the places [runs[r], runs[r + 1]), which are those of one row.
void bag_scatter(real* out, const real* in, const BagPlace* places, const int64_t* runs, int64_t run_count,
                 const real* factors, int64_t width);

// Plane rotations of pairs of features.

/// Which features of x turn, and by which angles.
struct RotaryPass {
  int64_t rows, heads, width;  // x: (rows, heads, width)
  int64_t pairs;               // rotated per head: the first 2 * pairs features
  bool interleaved;            // pair i is (2i, 2i + 1), else (i, i + pairs)
  const real *cosine, *sine;   // tables of rows of `pairs` values
  const int32_t* table_rows;   // (rows): which row of the tables serves which row of x
  int64_t turned_heads = 0;    // the first ones; 0: all
};

/// y = x with each pair (a, b) turned into (a c - b s, a s + b c); backwards with -s. y may be x.
void rotate(const RotaryPass& pass, bool backwards, const real* x, real* y);

/// One row of one head: pairs (a, b) of x into (a c - s b, a s + b c), with s = sign * sine. y may be x.
using RotateRow = void (*)(const real* x, const real* cosine, const real* sine, real sign, real* y, int64_t pairs);
RotateRow rotate_row(bool interleaved);

}  // namespace capstan::CAPSTAN_PRECISION::kernels
