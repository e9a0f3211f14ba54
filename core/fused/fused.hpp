// Operations that a network would otherwise make of several ops, each with its gradient: called by nn/layers,
// nn/systems and models. Each equals its composition of primitives up to rounding (tests/core/fused/test_*.cpp) and has
// the gradients of finite differences (tests/core/fused/gradcheck_fused.cpp). Sums depend on shapes alone, not on the
// number of threads.
#pragma once

#include <vector>

#include "core/autograd/tape.hpp"
#include "core/autograd/var.hpp"
#include "core/kernels/kernels.hpp"
#include "core/ops/ops.hpp"

namespace capstan::CAPSTAN_PRECISION {

// Normalisation over the last axis. Each op saves its input and one or two values per row.

/// y = (x - mean x) / sqrt(var x + eps) * gain + bias.  x: (..., D), gain, bias: (D) or undefined (1 and 0).
/// The variance divides by D. Ba et al. 2016, arXiv 1607.06450. Throws std::invalid_argument naming the shapes.
Var layer_norm(const Var& x, const Var& gain = Var(), const Var& bias = Var(), double eps = 1e-5);

/// y = x / sqrt(mean x^2 + eps) * gain.  x: (..., D), gain: (D) or undefined. Zhang and Sennrich 2019, arXiv
/// 1910.07467. Throws std::invalid_argument naming the shapes, or for a negative eps.
Var rms_norm(const Var& x, const Var& gain = Var(), double eps = 1e-6);

/// rms_norm with one gain for all features.  gain: () or (1).
/// Nguyen and Salazar 2019, arXiv 1910.05895, as FLASH uses it.
Var scale_norm(const Var& x, const Var& gain, double eps = 1e-6);

// The affine map with its activation.

/// y = act(x W^T + b).  x: (..., in), weight: (out, in), bias: (out) or undefined -> y: (..., out).
/// Saves x and, with an activation, the raw product x W^T only. Throws std::invalid_argument naming the shapes.
Var linear(const Var& x, const Var& weight, const Var& bias = Var(), Activation activation = Activation::none);

// The two-layer feed-forward networks of Transformer blocks, each one op: the hidden activation is never kept.

/// y = act(x U^T + u) V^T + v.  x: (..., D), up_weight U: (F, D), up_bias u: (F), down_weight V: (E, F),
/// down_bias v: (E) -> y: (..., E). Biases may be undefined. Saves x and x U^T only; the pullback forms the activation
/// again. Throws std::invalid_argument naming the shapes.
Var feed_forward(const Var& x, const Var& up_weight, const Var& up_bias, const Var& down_weight, const Var& down_bias,
                 Activation activation);

/// y = (act(g) * h) V^T + v with [g | h] = x U^T + u.  As feed_forward, with U: (2F, D) and u: (2F), the gate's
/// half first. GLU with sigmoid (Dauphin et al. 2017), SwiGLU with silu,
/// GeGLU with gelu (Shazeer 2020, arXiv 2002.05202).
Var gated_feed_forward(const Var& x, const Var& up_weight, const Var& up_bias, const Var& down_weight,
                       const Var& down_bias, Activation gate);

// Bags of table rows: sums of embeddings, of which a large table gets a sparse gradient.

/// Bag b holds ids[offsets[b]] ... ids[offsets[b + 1] - 1]; its sum is multiplied by factors[b].
struct Bags {
  std::vector<int32_t> ids;
  std::vector<int64_t> offsets = {0};
  std::vector<real> factors;
  int64_t count() const { return static_cast<int64_t>(factors.size()); }
  /// Closes the bag of the ids added since the last one.
  void close(real factor) {
    offsets.push_back(static_cast<int64_t>(ids.size()));
    factors.push_back(factor);
  }
};

/// y[b] = factors[b] * sum of table[id] over bag b; an empty bag gives 0.  table: (V, D) -> (B, D).
/// dtable[v] = sum of factors[b] g[b] over the positions of id v, as the gradient of the rows that are named. Throws
/// std::invalid_argument for an id outside the table.
Var embedding_bag(const Var& table, Bags bags);

// Cross-entropy of integer targets, and of sets of labels.

struct CrossEntropyOptions {
  int32_t ignored = -1;        // rows with this target add nothing and get zero gradients
  double label_smoothing = 0;  // s in [0, 1): the target distribution is (1 - s) * one-hot + s / V
  Array class_weights = {};    // (V): a row's loss is multiplied by its target's; empty: by 1
  bool count_correct = false;  // fill CrossEntropy::correct
  int64_t chunk_rows = 0;      // linear_cross_entropy: rows whose logits exist at a time; 0: chosen from V
};

/// The summed loss of rows, and the number of rows.
struct CrossEntropy {
  Var sum;              // scalar: natural-log loss summed over the counted rows
  int64_t targets = 0;  // rows that are not ignored
  /// Of these, the rows whose highest logit is the target's (the first of equal ones); 0 unless asked for.
  int64_t correct = 0;
};

/// -log softmax(logits)[target], summed.  logits: (..., V), targets: (...). Saves the logits and two values per row.
/// Throws std::invalid_argument naming the shapes, or id, row and V for a target outside [0, V).
CrossEntropy softmax_cross_entropy(const Var& logits, const Ids& targets, const CrossEntropyOptions& options = {});

/// softmax_cross_entropy(x W^T + b, targets) without ever holding all logits.  x: (..., D), weight: (V, D), bias: (V)
/// or undefined, targets: (...). When recording, the gradients of x, W and b are formed chunk by chunk in the forward
/// pass and only scaled in the pullback.
CrossEntropy linear_cross_entropy(const Var& x, const Var& weight, const Var& bias, const Ids& targets,
                                  const CrossEntropyOptions& options = {});

struct SigmoidCrossEntropyOptions {
  double label_smoothing = 0;  // s in [0, 1): targets are (1 - s) y + s / 2
  Array label_weights = {};    // (C): factors of the loss where y = 1; empty: 1
};

/// The sum over rows and labels of -w t log p - (1 - t) log(1 - p), p = 1 / (1 + e^-logit), t = (1 - s) y + s / 2: a
/// scalar. dlogit = (1 - t) p - w t (1 - p).  logits: (..., C), labels y: (..., C), 0 or 1. Saves logits and targets.
/// Throws std::invalid_argument naming the shapes, or a label that is neither.
Var sigmoid_cross_entropy(const Var& logits, const Ids& labels, const SigmoidCrossEntropyOptions& options = {});

}  // namespace capstan::CAPSTAN_PRECISION
