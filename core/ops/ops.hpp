// All primitive ops, each with its gradient: what composed forms (composed.cpp in the folders of nn/systems) and the
// rarer parts of models are made of. g is the gradient of the output; negative axes count from the end; an axis, range,
// index or size that does not fit throws std::invalid_argument. tests/core/ops/test_ops.cpp holds the values,
// gradcheck_ops.cpp beside it the gradients: a new op gets a row in both.
#pragma once

#include <vector>

#include "core/array/segments.hpp"
#include "core/autograd/tape.hpp"
#include "core/base/random.hpp"
#include "core/products/gemm.hpp"

namespace capstan::CAPSTAN_PRECISION {

// Element-wise primitives. Two operands broadcast as in NumPy; the tape sums gradients over the broadcast axes.

/// a + b.  da = g, db = g.
Var add(const Var& a, const Var& b);
/// a - b.  da = g, db = -g.
Var sub(const Var& a, const Var& b);
/// a * b.  da = g * b, db = g * a.
Var mul(const Var& a, const Var& b);
/// y = a / b.  da = g / b, db = -g * y / b.
Var div(const Var& a, const Var& b);
/// a where mask is not 0, b elsewhere; all three broadcast.  da = g where mask, db = g elsewhere. What is not chosen
/// may be infinite or NaN.
Var where(const Array& mask, const Var& a, const Var& b);

/// x + s.  dx = g.
Var add_scalar(const Var& x, double s);
/// x * s.  dx = g * s.
Var mul_scalar(const Var& x, double s);

/// -x.  dx = -g.
Var neg(const Var& x);
/// y = e^x.  dx = g * y.
Var exp(const Var& x);
/// Natural logarithm.  dx = g / x.
Var log(const Var& x);
/// y = sqrt(x).  dx = g / (2 y).
Var sqrt(const Var& x);
/// x^2.  dx = 2 g x.
Var square(const Var& x);
/// y = tanh(x).  dx = g (1 - y^2).
Var tanh(const Var& x);
/// y = 1 / (1 + e^-x), without overflow.  dx = g y (1 - y).
Var sigmoid(const Var& x);
/// x sigmoid(x).  dx = g s (1 + x (1 - s)) with s = sigmoid(x).  Also called swish.
Var silu(const Var& x);
/// x Phi(x) = x (1 + erf(x / sqrt 2)) / 2: the exact form, not the tanh approximation.  dx = g (Phi(x) + x phi(x)).
/// Hendrycks and Gimpel 2016, arXiv 1606.08415.
Var gelu(const Var& x);
/// max(x, 0).  dx = g where x > 0, else 0.
Var relu(const Var& x);
/// max(x, 0)^2.  dx = 2 g max(x, 0).  So et al. 2021, arXiv 2109.08668.
Var squared_relu(const Var& x);
/// Error function.  dx = g 2 / sqrt(pi) e^(-x^2).
Var erf(const Var& x);

inline Var operator+(const Var& a, const Var& b) { return add(a, b); }
inline Var operator-(const Var& a, const Var& b) { return sub(a, b); }
inline Var operator*(const Var& a, const Var& b) { return mul(a, b); }
inline Var operator/(const Var& a, const Var& b) { return div(a, b); }
inline Var operator-(const Var& x) { return neg(x); }
inline Var operator+(const Var& x, double s) { return add_scalar(x, s); }
inline Var operator+(double s, const Var& x) { return add_scalar(x, s); }
inline Var operator-(const Var& x, double s) { return add_scalar(x, -s); }
inline Var operator-(double s, const Var& x) { return add_scalar(neg(x), s); }
inline Var operator*(const Var& x, double s) { return mul_scalar(x, s); }
inline Var operator*(double s, const Var& x) { return mul_scalar(x, s); }
inline Var operator/(const Var& x, double s) { return mul_scalar(x, 1 / s); }

// Primitives that reduce along axes. An axis named twice throws std::invalid_argument.

using Axes = std::vector<int>;

struct ReduceOptions {
  bool keep_dims = false;  // reduced axes stay, with extent 1
};
/// sum(x, {-1}, keep_dims)
inline constexpr ReduceOptions keep_dims{true};

/// Sum over all elements, a scalar; or over `axes`.  dx = g, broadcast back. Empty sums are 0.
Var sum(const Var& x);
Var sum(const Var& x, const Axes& axes, const ReduceOptions& options = {});
/// Mean over n elements.  dx = g / n. Throws std::invalid_argument for n = 0.
Var mean(const Var& x);
Var mean(const Var& x, const Axes& axes, const ReduceOptions& options = {});

// Primitives that move elements without changing them.

/// The same elements under another shape; one extent may be -1 and is worked out. Shares x's buffer.  dx = reshape(g).
Var reshape(const Var& x, const std::vector<int64_t>& extents);
/// Axis i of the result is axis order[i] of x.  dx = the inverse permutation of g.
Var transpose(const Var& x, const std::vector<int>& order);
/// (..., M, N) -> (..., N, M).
Var transpose(const Var& x);
/// Entries [begin, end) of `axis`.  dx = g there, 0 elsewhere.
Var slice(const Var& x, int axis, int64_t begin, int64_t end);
/// Parts that agree in all extents but that of `axis`, one after another.  Each part's gradient is its slice of g.
Var concatenate(const std::vector<Var>& parts, int axis);
/// Consecutive pieces of the given sizes along `axis`; the sizes must add up to its extent. One op with several
/// outputs, so that the gradient is put together once.  dx = concatenate(g); 0 for an output that was not used.
std::vector<Var> split(const Var& x, int axis, const std::vector<int64_t>& sizes);
/// x repeated along the axes it lacks or in which its extent is 1.  dx = g summed over them.
Var broadcast_to(const Var& x, const Shape& shape);

// Matrix products of Vars.

struct MatmulOptions {
  Transpose a = Transpose::no, b = Transpose::no;  // take the last two axes of the operand transposed
};

/// y = a b.  a: (..., M, K), b: (..., K, N) -> (..., M, N); with Transpose::yes an operand is stored (..., K, M) or
/// (..., N, K). The leading axes broadcast.  da = g b^T, db = a^T g, summed over broadcast axes; the gradient of a
/// parameter is added to its block in place. Throws std::invalid_argument for a rank below 2
/// and for shapes that do not fit.
Var matmul(const Var& a, const Var& b, const MatmulOptions& options = {});

// Softmax over the last axis.  x: (..., D) -> y: (..., D). A mask broadcasts to x: entries where it is 0 take no part,
// their results and gradients are 0, and their x may be anything.
// A row with no entry left gives zeros and zero gradients.

/// y_i = e^(x_i - m) / sum_j e^(x_j - m) with m = max x.  dx = y (g - sum(g y)). Saves y.
Var softmax(const Var& x);
Var softmax(const Var& x, const Array& mask);

// Primitives that read and write at given places. An index outside its range throws std::invalid_argument naming the
// index and its position. All gradients are sums in a fixed order: they do not depend on the number of threads.

/// y = x taken at `index` along `axis`: x (A, N, C), index (I...) -> (A, I..., C), y[a, i, c] = x[a, index[i], c].
/// dx[a, n, c] = sum of g[a, i, c] over the i with index[i] = n.
Var gather(const Var& x, const Ids& index, int axis = 0);
/// Rows of a table: table (V, D), ids (...) -> (..., D).  dtable[v] = sum of g over the positions of id v, added
/// to the block in place where the table is a parameter.
Var embedding(const Var& table, const Ids& ids);

// Depthwise causal convolution along time.

/// y[b, t, d] = sum over k of kernel[d, k] x[b, t - (K - 1) + k, d], with zeros before the start of the token's
/// document: the last tap is the present token. Padding gives 0.  x: (B, T, D), kernel: (D, K) -> (B, T, D).
/// dx[b, t, d] = sum over k of kernel[d, k] g[b, t + (K - 1) - k, d];
/// dkernel[d, k] = sum over b, t of g[b, t, d] x[b, t - (K - 1) + k, d], both within a document.
Var depthwise_causal_conv(const Var& x, const Var& kernel, const Segments& segments);

// Dropout with counters. Srivastava et al. 2014.

struct DropoutOptions {
  double rate = 0;     // probability of becoming 0, in [0, 1)
  RandomKey key;       // of the module
  uint64_t step = 0;   // the optimizer's step; only its low 32 bits are used
  Ids examples;        // (B): index of each row's example in the epoch's order
  Ids positions = {};  // (B, T), or (B) where x has rank 2; empty: t, or 0 where x has rank 2
};

/// x: (B, T, ...) or (B, D) -> same shape: every element is kept with probability 1 - rate and scaled by 1 / (1 -
/// rate), else 0.  dx = the same mask on g. The mask is regenerated in the pullback, not stored, and is a pure function
/// of (key, example, position, channel, step): padding, the row's place in the batch and threads do not change it. A
/// rate of 0 gives x itself. Throws std::invalid_argument for a rate outside [0, 1) or ids that do not fit x.
Var dropout(const Var& x, const DropoutOptions& options);

/// The numbers of a rate: a word of Philox below `threshold` drops its element, and those kept are scaled.
struct DropoutRate {
  uint32_t threshold;
  real scale;
};
/// Throws std::invalid_argument for a rate outside [0, 1).
DropoutRate dropout_rate(double rate);

}  // namespace capstan::CAPSTAN_PRECISION
