// The layer that scores every token of the vocabulary.
#pragma once

#include <memory>

#include "core/config/schema.hpp"
#include "models/stack.hpp"

namespace capstan {

/// The layer that scores the tokens of a vocabulary.
struct OutputConfig {
  bool tied_output = true;
  bool output_bias = false;
};
template <class Fields>
void describe_output(Fields& f, OutputConfig& c) {
  f("tied_output", c.tied_output, any(), "the output layer uses the weights of the embedding");
  f("output_bias", c.output_bias, any(), "a bias for each token in the output layer");
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// logits = states W^T + b. W is embed.weight (tied; output.weight is then another name of it) or output.weight (V, D);
/// b is output.bias (V), if there is one.
class TokenOutput {
 public:
  /// `stack` is in `scope` and must outlive it.
  TokenOutput(const Scope& scope, const Stack& stack, const OutputConfig& config, int64_t vocabulary);
  TokenOutput(const TokenOutput&) = delete;
  TokenOutput& operator=(const TokenOutput&) = delete;

  const Var& weight() const { return own_ ? own_->weight() : stack_.embedding_weight(); }
  const Var& bias() const { return bias_; }
  bool tied() const { return !own_; }

 private:
  const Stack& stack_;
  std::unique_ptr<Linear> own_;
  Var bias_;
};

}  // namespace capstan::CAPSTAN_PRECISION
