// The feed-forward network of a block. tests/nn/layers/ has values, gradients and PyTorch's results.
#pragma once

#include <vector>

#include "core/config/schema.hpp"
#include "core/kernels/activation.hpp"
#include "nn/layers/layers.hpp"

namespace capstan {

enum class FeedForwardKind { none, relu, squared_relu, gelu, silu, glu, swiglu, geglu };

/// What a kind of feed-forward network is called and computes.
struct FeedForwardForm {
  FeedForwardKind kind;
  const char* name;
  Activation activation;
  bool gated;
};
constexpr FeedForwardForm feed_forward_forms[] = {
    {FeedForwardKind::none, "none", Activation::none, false},
    {FeedForwardKind::relu, "relu", Activation::relu, false},
    {FeedForwardKind::squared_relu, "squared-relu", Activation::squared_relu, false},
    {FeedForwardKind::gelu, "gelu", Activation::gelu, false},
    {FeedForwardKind::silu, "silu", Activation::silu, false},
    {FeedForwardKind::glu, "glu", Activation::sigmoid, true},
    {FeedForwardKind::swiglu, "swiglu", Activation::silu, true},
    {FeedForwardKind::geglu, "geglu", Activation::gelu, true}};

inline std::vector<EnumName<FeedForwardKind>> enum_names(FeedForwardKind) {
  std::vector<EnumName<FeedForwardKind>> names;
  for (const FeedForwardForm& form : feed_forward_forms) names.push_back({form.kind, form.name});
  return names;
}

struct FeedForwardConfig {
  FeedForwardKind type = FeedForwardKind::gelu;
  double expansion = 4;
  bool bias = true;
};

template <class Fields>
void describe(Fields& f, FeedForwardConfig& c) {
  f("type", c.type, any(), "activation; glu, swiglu and geglu are gated (two up-projections)");
  f("expansion", c.expansion, greater_up_to(0, 1024), "hidden width as a multiple of the model's width");
  f("bias", c.bias, any(), "biases of both projections");
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// (..., width) -> (..., width) through a hidden layer. Parameters up.weight, up.bias, down.weight, down.bias; gated
/// kinds have the gate's half of `up` first.
class FeedForward {
 public:
  FeedForward(const Scope& scope, const FeedForwardConfig& config, int64_t width, double init_gain);
  Var operator()(const Var& x) const;
  /// The network applied to one token of each sequence while decoding.
  Array step(const Array& x, DecodeContext& decode) const;
  int64_t hidden() const { return hidden_; }

 private:
  FeedForwardConfig config_;
  int64_t hidden_;
  Linear up_, down_;
};

}  // namespace capstan::CAPSTAN_PRECISION
