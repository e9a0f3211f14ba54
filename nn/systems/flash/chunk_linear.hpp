// The global, linear part of mixed chunk attention: op, engine and composed form. Hua et al. 2022 (FLASH), arXiv
// 2202.10447. Called by nn/systems/flash/mixer.cpp; tests/nn/systems/flash/test_chunk_linear.cpp compares both forms.
#pragma once

#include "core/array/segments.hpp"
#include "core/autograd/tape.hpp"

namespace capstan {

/// What the sum over visible keys is divided by: their number; chunk * the number of their chunks (the paper's
/// appendix: a short last chunk counts in full).
enum class ChunkNormaliser { counted, chunks };

/// Which keys a query sees, and what their sum is divided by.
struct ChunkLinearOptions {
  int64_t chunk = 256;  // tokens; chunks begin at position 0 of every document, the last one may be shorter
  bool causal = false;
  ChunkNormaliser normaliser = ChunkNormaliser::counted;
  bool bf16 = false;  // as in AttentionOptions (nn/systems/quadratic/options.hpp)
};

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// 1 / n for queries that see `keys` tokens: causal those of all earlier chunks, bidirectional the whole document.
/// 0 for none.
real chunk_linear_scale(const ChunkLinearOptions& options, int64_t keys);

/// O_i = q_i . M / n with M = sum of k_j^T v_j over the keys that i sees: causal those of all strictly earlier chunks
/// of its document (the first chunk gives 0), bidirectional those of the whole document. Padding gives 0 and gets no
/// gradient.  q, k: (B, T, Z), v: (B, T, E) -> (B, T, E).  Saves q, k and v only: the pullback runs the state M
/// (Z, E) forward again for dq and its mirror image N backward for dk and dv.
/// Throws std::invalid_argument naming the shapes.
Var chunk_linear_attention(const Var& q, const Var& k, const Var& v, const Segments& segments,
                           const ChunkLinearOptions& options);

/// The causal op for the next T tokens of B sequences that have `position` tokens, those of the current chunk included.
/// q: (B, T, Z); k: (B, current + T, Z) and v: (B, current + T, E) begin with the `current` = position mod chunk tokens
/// of that chunk. m: (B, Z, E), M of all full chunks, undefined without any; becomes that after the T tokens. -> (B, T,
/// E). Records nothing.
Array chunk_linear_continue(const Array& q, const Array& k, const Array& v, int64_t position, Array& m,
                            const ChunkLinearOptions& options);

}  // namespace capstan::CAPSTAN_PRECISION
