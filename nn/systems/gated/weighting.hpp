// How gated attention turns products of queries and keys into weights: kernel, form of the logits, normaliser. A
// checkpoint needs the form it was trained with. tests/nn/systems/gated/test_weighting.cpp has the scales by hand.
#pragma once

#include <string>
#include <vector>

#include "core/config/schema.hpp"
#include "nn/systems/quadratic/op.hpp"

namespace capstan {

/// What the kernel f is applied to; n is set by the normaliser, Z the width of a key, b the position bias.
enum class LogitForm { key_dim, length, log_length };

inline std::vector<EnumName<LogitForm>> enum_names(LogitForm) {
  return {{LogitForm::key_dim, "key-dim"}, {LogitForm::length, "length"}, {LogitForm::log_length, "log-length"}};
}

enum class Normaliser { counted, paper, chunk, document };

inline std::vector<EnumName<Normaliser>> enum_names(Normaliser) {
  return {{Normaliser::counted, "counted"},
          {Normaliser::paper, "paper"},
          {Normaliser::chunk, "chunk"},
          {Normaliser::document, "document"}};
}

/// Does n differ from query to query?
inline bool counts_tokens(Normaliser normaliser) {
  return normaliser == Normaliser::counted || normaliser == Normaliser::document;
}

struct GatedKernelConfig {
  AttentionKernel kernel = AttentionKernel::squared_relu;
  LogitForm logits = LogitForm::key_dim;
  Normaliser normaliser = Normaliser::counted;
  int64_t min_length = 16;
  bool whole_length = false;  // of `length`: n divides b, too
};

template <class Fields>
void describe_kernel(Fields& f, GatedKernelConfig& c) {
  f("kernel", c.kernel, any(), "the function f: squared-relu (the paper), laplace (Mega) or softmax");
  f("logits", c.logits, any(),
    "weight of a key: key-dim = f(qk/sqrt(key_dim) + b)/n (the paper), length = f(qk/n + b) (its appendix; Mega); for "
    "softmax key-dim, without n, or log-length (GAU-alpha)");
  f("normaliser", c.normaliser, any(),
    "what n is: counted (the keys that a token sees), paper (a constant) or, for flash, chunk (FLASH-pytorch) or "
    "document (the tokens of the document; causal: up to the token itself)");
}
/// The keys of its map `compat`.
template <class Fields>
void describe_kernel_compat(Fields& f, GatedKernelConfig& c) {
  f("min_length", c.min_length, length_from(1),
    "for logits log-length: n is at least this; 16 in bert4keras, 1 in ports of GAU-alpha");
  f("whole_length", c.whole_length, any(), "for logits length: f((qk + b)/n) (FLASH-pytorch's GAU)");
}

/// Why kernel, logits and normaliser cannot be combined; null if they can.
inline const char* kernel_problem(const GatedKernelConfig& c) {
  const bool softmax = c.kernel == AttentionKernel::softmax;
  if (softmax && c.logits == LogitForm::length) return "the softmax kernel takes logits key-dim or log-length";
  if (!softmax && c.logits == LogitForm::log_length) return "logits log-length are for the softmax kernel";
  if (c.whole_length && c.logits != LogitForm::length) return "compat.whole_length is for logits length";
  // With n in front of b, the bias would differ from query to query; squared-relu takes n out of the kernel.
  if (c.kernel == AttentionKernel::laplace && c.whole_length && counts_tokens(c.normaliser))
    return "the laplace kernel takes compat.whole_length only with a constant n: normaliser paper or, in flash, chunk";
  return nullptr;
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// A key's weight is output * f(logit * (q . k) + bias * b).
struct KernelScales {
  double logit, bias, output;
};

/// The sizes that the scales of a gated kernel depend on.
struct GatedKernelShape {
  int64_t key_dim;
  bool causal;
  int64_t constant;   // n of the normalisers `paper` and `chunk`
  int64_t chunk = 0;  // as in AttentionOptions
};

/// For a query that sees `count` keys, at least 1; of `document`, `count` is that of its document's tokens. `bias` is
/// the same for every query. Throws std::invalid_argument for an undefined combination.
KernelScales kernel_scales(const GatedKernelConfig& config, const GatedKernelShape& shape, double count);

/// Options of attention() with the scales of every query but `bias`, which is for the table of b. `past`: as in
/// visible_counts().
AttentionOptions gated_attention_options(const GatedKernelConfig& config, const GatedKernelShape& shape,
                                         const Segments& segments, int64_t past = 0);

}  // namespace capstan::CAPSTAN_PRECISION
