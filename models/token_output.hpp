// The layer that scores every token of the vocabulary.
#pragma once

#include <memory>

#include "models/stack.hpp"

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
