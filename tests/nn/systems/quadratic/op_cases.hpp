// The cases attention is tested on.
#pragma once

#include <string>
#include <vector>

#include "nn/systems/quadratic/composed.hpp"
#include "nn/systems/quadratic/op.hpp"
#include "tests/support/agreement.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/ragged.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

/// Kernel, direction, chunk, number of heads, bias, and whether every query has factors of its own.
struct AttentionCase {
  AttentionKernel kernel;
  bool causal;
  int64_t chunk, heads;
  bool biased, scaled;
  int64_t tile = 0;

  std::string name() const {
    return std::string(enum_name(kernel)) + (causal ? ", causal" : ", bidirectional") + ", chunk " +
           std::to_string(chunk) + ", heads " + std::to_string(heads) + (biased ? ", bias" : "") +
           (scaled ? ", factors" : "");
  }
  /// The options for these segments; factors of both signs.
  AttentionOptions options(const Segments& segments) const {
    AttentionOptions options;
    options.kernel = kernel;
    options.heads = heads;
    options.causal = causal;
    options.chunk = chunk;
    options.scale = 0.6;
    options.tile = tile;
    if (scaled) {
      options.row_scale = normal_array(segments.ids().shape(), 31, 1);
      options.output_scale = normal_array(segments.ids().shape(), 32, 1);
    }
    return options;
  }
  Var fused(const std::vector<Var>& in, const Segments& segments) const {
    return attention(in[0], in[1], in[2], biased ? in[3] : Var(), segments, options(segments));
  }
  Var composed(const std::vector<Var>& in, const Segments& segments) const {
    return attention_composed(in[0], in[1], in[2], biased ? in[3] : Var(), segments, options(segments));
  }
  /// q, k, v and, where there is one, the bias; heads of `key_width` and `value_width`.
  std::vector<Shape> shapes(const Segments& segments, int64_t key_width, int64_t value_width) const {
    const int64_t batch = segments.batch(), length = segments.length();
    std::vector<Shape> shapes{
        {batch, length, heads * key_width}, {batch, length, heads * key_width}, {batch, length, heads * value_width}};
    if (biased) shapes.push_back({heads, 2 * ((chunk > 0 ? std::min(chunk, length) : length) + 2) - 1});
    return shapes;
  }
};

/// Every combination, in tiles of `tile` queries.
inline std::vector<AttentionCase> attention_cases(int64_t tile = 0) {
  std::vector<AttentionCase> cases;
  for (const auto& kernel : enum_names(AttentionKernel{}))
    for (const bool causal : {true, false})
      for (const int64_t chunk : {0, 6})
        for (const int64_t heads : {1, 3})
          for (const bool biased : {true, false})
            for (const bool scaled : {true, false})
              cases.push_back({kernel.value, causal, chunk, heads, biased, scaled, tile});
  return cases;
}

/// Holds the op equal to the composition that defines it.
inline void check_composition(const AttentionCase& c, const Segments& segments, int64_t key_width,
                              int64_t value_width) {
  check_agreement(
      c.name(), [&](const std::vector<Var>& in) { return c.fused(in, segments); },
      [&](const std::vector<Var>& in) { return c.composed(in, segments); }, c.shapes(segments, key_width, value_width),
      0.7);
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
