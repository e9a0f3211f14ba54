// The definition of chunk_linear_attention(), with weights 1 / n for the pairs that see each other.
#include "nn/systems/flash/chunk_linear_composed.hpp"

#include <set>

#include "core/ops/ops.hpp"
#include "nn/systems/flash/chunk_linear.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// Does query i see key j, by their positions in one document?
bool sees(int64_t i, int64_t j, const ChunkLinearOptions& options) {
  return !options.causal || j / options.chunk < i / options.chunk;
}

/// n of query i in a document of `length` tokens; 0 where it sees nothing.
double normaliser(int64_t i, int64_t length, const ChunkLinearOptions& options) {
  std::set<int64_t> chunks;
  int64_t keys = 0;
  for (int64_t j = 0; j < length; ++j) {
    if (!sees(i, j, options)) continue;
    ++keys;
    chunks.insert(j / options.chunk);
  }
  if (options.normaliser == ChunkNormaliser::counted) return static_cast<double>(keys);
  return static_cast<double>(options.chunk) * static_cast<double>(chunks.size());
}

/// w: (B, T, T)
Array weights(const Segments& segments, const ChunkLinearOptions& options) {
  const int64_t length = segments.length();
  Array table = Array::zeros(Shape{segments.batch(), length, length});
  for (const Segments::Span& span : segments.spans()) {
    for (int64_t i = 0; i < span.length(); ++i) {
      real* const row = table.mutable_data() + (span.row * length + span.begin + i) * length + span.begin;
      const double n = normaliser(i, span.length(), options);
      for (int64_t j = 0; j < span.length(); ++j)
        if (sees(i, j, options)) row[j] = static_cast<real>(1 / n);
    }
  }
  return table;
}

}  // namespace

Var chunk_linear_attention_composed(const Var& q, const Var& k, const Var& v, const Segments& segments,
                                    const ChunkLinearOptions& options) {
  return matmul(matmul(q, k, {Transpose::no, Transpose::yes}) * Var(weights(segments, options)), v);
}

}  // namespace capstan::CAPSTAN_PRECISION
