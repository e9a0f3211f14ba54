// How gated attention turns products of queries and keys into weights: kernel, form of the logits, normaliser. A
// checkpoint needs the form it was trained with. tests/nn/systems/gated/test_weighting.cpp has the scales by hand.
#pragma once

#include <string>
#include <vector>

#include "core/config/schema.hpp"
#include "nn/systems/quadratic/op.hpp"

namespace capstan {

/// What the kernel f is applied to; n is set by the normaliser, Z the width of a key, b the position bias.
enum class LogitForm { key_dim, length };

inline std::vector<EnumName<LogitForm>> enum_names(LogitForm) {
  return {{LogitForm::key_dim, "key-dim"}, {LogitForm::length, "length"}};
}

enum class Normaliser { counted, paper, document };

inline std::vector<EnumName<Normaliser>> enum_names(Normaliser) {
  return {{Normaliser::counted, "counted"}, {Normaliser::paper, "paper"}, {Normaliser::document, "document"}};
}

struct GatedKernelConfig {
  AttentionKernel kernel = AttentionKernel::squared_relu;
  LogitForm logits = LogitForm::key_dim;
  Normaliser normaliser = Normaliser::counted;
};

template <class Fields>
void describe_kernel(Fields& f, GatedKernelConfig& c) {
  f("kernel", c.kernel, any(), "the function f: squared-relu (the paper), laplace (Mega) or softmax");
  f("logits", c.logits, any(),
    "weight of a key: key-dim = f(qk/sqrt(key_dim) + b)/n (the paper; softmax without n), length = f(qk/n + b) (its "
    "appendix; Mega)");
  f("normaliser", c.normaliser, any(),
    "what n is: counted (the keys that a token sees), paper (a constant) or, for flash, document (the tokens of the "
    "document; causal: up to the token itself)");
}
/// Why kernel and logits cannot be combined; null if they can.
inline const char* kernel_problem(const GatedKernelConfig& c) {
  const bool softmax = c.kernel == AttentionKernel::softmax;
  return softmax && c.logits == LogitForm::length ? "the softmax kernel takes logits key-dim" : nullptr;
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// A key's weight is output * f(logit * (q . k) + b).
struct KernelScales {
  double logit, output;
};

/// The sizes that the scales of a gated kernel depend on.
struct GatedKernelShape {
  int64_t key_dim;
  bool causal;
  int64_t constant;   // n of the normaliser `paper`
  int64_t chunk = 0;  // as in AttentionOptions
};

/// For a query that sees `count` keys, at least 1; of `document`, `count` is that of its document's tokens. Throws
/// std::invalid_argument for an undefined combination.
KernelScales kernel_scales(const GatedKernelConfig& config, const GatedKernelShape& shape, double count);

/// Options of attention() with the scales of every query. `past`: as in
/// visible_counts().
AttentionOptions gated_attention_options(const GatedKernelConfig& config, const GatedKernelShape& shape,
                                         const Segments& segments, int64_t past = 0);

}  // namespace capstan::CAPSTAN_PRECISION
