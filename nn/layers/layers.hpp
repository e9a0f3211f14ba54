// The layers that every block is built from: thin holders of parameters around the ops of core. Used by nn/blocks,
// nn/systems and models. Names and shapes of their parameters are those of stored runs: a change breaks
// tests/cli/runs/test_old_runs.cpp. tests/nn/layers/ has values, gradients and PyTorch's results.
#pragma once

#include <vector>

#include "core/config/schema.hpp"
#include "core/fused/linear.hpp"
#include "core/kernels/activation.hpp"
#include "core/ops/dropout.hpp"
#include "core/ops/math.hpp"
#include "nn/layers/context.hpp"
#include "nn/params/scope.hpp"

namespace capstan {

enum class NormKind { layer, rms, scale, none };

inline std::vector<EnumName<NormKind>> enum_names(NormKind) {
  return {{NormKind::layer, "layer"}, {NormKind::rms, "rms"}, {NormKind::scale, "scale"}, {NormKind::none, "none"}};
}

struct NormConfig {
  NormKind type = NormKind::layer;
  double eps = 1e-5;  // no key: added to the variance or mean square, to avoid division by zero
};

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

struct LinearConfig {
  int64_t in, out;
  bool bias = true;
  double init_gain = 1;               // the weight starts as N(0, init_gain^2 / in)
  bool output = false;                // its rows are classes or tokens: a table, as an embedding (ParamOptions::table)
  std::vector<int64_t> stacked = {};  // rows of each matrix that the weight stacks (ParamOptions::stacked)
};

/// (..., in) -> (..., out). Parameters weight (out, in) and bias (out).
class Linear {
 public:
  Linear(const Scope& scope, const LinearConfig& config);
  Var operator()(const Var& x, Activation activation = Activation::none) const {
    return linear(x, weight_, bias_, activation);
  }
  /// The layer applied to one token of each sequence while decoding.
  Array step(const Array& x, DecodeContext& decode, Activation activation = Activation::none) const {
    return decode.linear(x, weight_, bias_, activation);
  }
  const Var& weight() const { return weight_; }
  const Var& bias() const { return bias_; }

 private:
  Var weight_, bias_;
};

/// A table of `count` rows of `width` elements, which start as N(0, stddev^2); `decay`: does weight decay apply?
/// `by_rows`: its gradient is RowGrads, and a step updates the rows that it read (ParamOptions::by_rows).
struct EmbeddingConfig {
  int64_t count, width;
  double stddev = 0.02;
  bool decay = true, by_rows = false;
};

/// ids (...) -> (..., width). Parameter weight (count, width).
class Embedding {
 public:
  Embedding(const Scope& scope, const EmbeddingConfig& config);
  Var operator()(const Ids& ids) const;
  const Var& weight() const { return weight_; }

 private:
  Var weight_;
  bool by_rows_;
};

/// Normalises the last axis. Parameters gain and, for `layer`, bias; `none` passes x through and has none.
class Norm {
 public:
  Norm(const Scope& scope, const NormConfig& config, int64_t width);
  Var operator()(const Var& x) const;

 private:
  NormConfig config_;
  Var gain_, bias_;
};

/// Sets a share of the elements to zero while training and scales the others. The choice is a pure function of seed,
/// path, example, position and step.
class Dropout {
 public:
  Dropout(const Scope& scope, double rate) : key_(scope.random_key()), rate_(rate) {}
  Var operator()(const Var& x, const Context& context) const;

 private:
  RandomKey key_;
  double rate_;
};

/// The order of features in a position's vector: sin and cos in turn (Vaswani et al. 2017), or all sin, then all cos.
enum class SinusoidOrder { interleaved, halves };

/// sin and cos of p / 10000^(2i/width) for each position p: (shape of positions, width), angles in double.
Array sinusoidal_positions(const Ids& positions, int64_t width, SinusoidOrder order);

}  // namespace capstan::CAPSTAN_PRECISION
