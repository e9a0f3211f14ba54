// Each op with inputs of the sizes that layers of the small model have. `flops` counts products with weights and
// mixing.
#include "bench/cases.hpp"
#include "core/fused/fused.hpp"
#include "core/fused/rotary.hpp"
#include "core/ops/ops.hpp"
#include "nn/systems/aft/op.hpp"
#include "nn/systems/fastformer/op.hpp"
#include "nn/systems/flash/chunk_linear.hpp"
#include "nn/systems/gated/op.hpp"
#include "nn/systems/quadratic/op.hpp"

namespace capstan::bench {
namespace {

constexpr int64_t batch = 8, length = 512, width = 256, hidden = 4 * width, vocabulary = 256;
constexpr int64_t rank = 64, window = 32, heads = 4;  // for AFT mixers, Fastformer and attention
constexpr int64_t inner = 2 * width, features = 128;  // for gated units
constexpr double tokens = batch * length;

Var leaf(const Shape& shape, double scale = 1) { return Var::leaf(normal_array(shape, scale)); }
Var weight(int64_t out, int64_t in) { return leaf({out, in}, 0.06); }
Var stream(int64_t columns) { return leaf({batch, length, columns}); }

Ids ids_below(int64_t limit) {
  Ids ids(Shape{batch, length});
  for (int64_t i = 0; i < ids.size(); ++i) ids.mutable_data()[i] = static_cast<int32_t>(i * 7919 % limit);
  return ids;
}

/// FLOPs of `in` times `out` weights for every token.
double product(int64_t in, int64_t out) { return 2 * tokens * static_cast<double>(in * out); }
/// FLOPs of mixing: `sources` sources per token, each with `columns` products and sums.
double mixing(int64_t sources, int64_t columns) { return product(sources, columns); }

void add_layers(std::vector<OpCase>& cases) {
  using Vars = const std::vector<Var>&;
  const Var x = stream(width), gain = leaf({width}), bias = leaf({width});
  cases.push_back({"layer_norm", {x, gain, bias}, [](Vars v) { return layer_norm(v[0], v[1], v[2]); }});
  cases.push_back({"rms_norm", {x, gain}, [](Vars v) { return rms_norm(v[0], v[1]); }});
  cases.push_back({"scale_norm", {x, leaf({1})}, [](Vars v) { return scale_norm(v[0], v[1]); }});
  cases.push_back({"linear",
                   {x, weight(hidden, width), leaf({hidden})},
                   [](Vars v) { return linear(v[0], v[1], v[2]); },
                   product(width, hidden)});
  cases.push_back({"linear gelu",
                   {x, weight(hidden, width), leaf({hidden})},
                   [](Vars v) { return linear(v[0], v[1], v[2], Activation::gelu); },
                   product(width, hidden)});
  cases.push_back({"feed_forward",
                   {x, weight(hidden, width), leaf({hidden}), weight(width, hidden), bias},
                   [](Vars v) { return feed_forward(v[0], v[1], v[2], v[3], v[4], Activation::gelu); },
                   2 * product(width, hidden)});
  cases.push_back({"gated_feed_forward",
                   {x, weight(2 * hidden, width), leaf({2 * hidden}), weight(width, hidden), bias},
                   [](Vars v) { return gated_feed_forward(v[0], v[1], v[2], v[3], v[4], Activation::silu); },
                   3 * product(width, hidden)});
  cases.push_back({"embedding", {weight(vocabulary, width)}, [ids = ids_below(vocabulary)](Vars v) {
                     return embedding(v[0], ids);
                   }});
  cases.push_back({"linear_cross_entropy",
                   {x, weight(vocabulary, width)},
                   [ids = ids_below(vocabulary)](Vars v) { return linear_cross_entropy(v[0], v[1], Var(), ids).sum; },
                   product(width, vocabulary)});
  cases.push_back({"softmax", {stream(length)}, [](Vars v) { return softmax(v[0]); }});
  cases.push_back({"rotary", {x}, [ids = ids_below(length)](Vars v) { return rotary(v[0], ids); }});
  cases.push_back({"dropout", {x}, [](Vars v) { return dropout(v[0], {0.1, {1, 2}, 3, Ids(Shape{batch}, 4)}); }});
  cases.push_back(
      {"depthwise_causal_conv",
       {x, leaf({width, 4})},
       [segments = Segments::full(batch, length)](Vars v) { return depthwise_causal_conv(v[0], v[1], segments); },
       mixing(4, width)});
}

void add_aft(std::vector<OpCase>& cases, const Segments& segments) {
  using Vars = const std::vector<Var>&;
  const Var qkv = stream(3 * width), u = leaf({length, rank}, 0.1), v_factor = leaf({length, rank}, 0.1);
  cases.push_back({"aft_simple", {qkv}, [=](Vars v) { return aft_simple(v[0], segments, true); }});
  cases.push_back({"aft_simple bidirectional", {qkv}, [=](Vars v) { return aft_simple(v[0], segments, false); }});
  cases.push_back({"aft_factorised local",
                   {qkv, u, v_factor},
                   [=](Vars v) { return aft_factorised(v[0], v[1], v[2], segments, true, window); },
                   mixing(window, 2 * width)});
  cases.push_back({"aft_factorised full",
                   {qkv, u, v_factor},
                   [=](Vars v) { return aft_factorised(v[0], v[1], v[2], segments, true, 0); },
                   mixing(length / 2, 2 * width)});
  cases.push_back({"aft_conv",
                   {stream(2 * width + heads), leaf({heads, window}, 0.1)},
                   [=](Vars v) { return aft_conv(v[0], v[1], segments, true); },
                   mixing(window, width + heads)});
}

void add_fastformer(std::vector<OpCase>& cases, const Segments& segments) {
  for (const bool causal : {true, false})
    cases.push_back({causal ? "fastformer" : "fastformer bidirectional",
                     {stream(2 * width), weight(heads, width), weight(heads, width), weight(width, width)},
                     [=](const std::vector<Var>& v) {
                       return fastformer(v[0], {v[1], v[2], Var(), Var(), v[3], Var()}, segments, causal);
                     },
                     product(width, width) + 2 * product(width, heads)});
}

void add_attention(std::vector<OpCase>& cases, const Segments& segments) {
  const Var q = stream(width), k = stream(width), v = stream(width);
  AttentionOptions options;
  options.causal = true;
  options.heads = heads;
  options.scale = 0.125;
  cases.push_back({"attention softmax",
                   {q, k, v},
                   [=](const std::vector<Var>& x) { return attention(x[0], x[1], x[2], Var(), segments, options); },
                   mixing(length / 2, 2 * width)});
  const std::vector<Var> gated = {leaf({batch, length, features}, 0.5), leaf({batch, length, features}, 0.5),
                                  stream(inner)};
  options.heads = 1;
  options.scale = 1.0 / 128;
  for (const int64_t chunk : {int64_t{0}, int64_t{256}})
    for (const auto& [kernel, name] : enum_names(AttentionKernel{})) {
      if (kernel == AttentionKernel::softmax) continue;
      options.kernel = kernel;
      options.chunk = chunk;
      cases.push_back({std::string("attention ") + name + (chunk > 0 ? " in chunks" : ""), gated,
                       [=](const std::vector<Var>& x) { return attention(x[0], x[1], x[2], Var(), segments, options); },
                       mixing((chunk > 0 ? chunk : length) / 2, features + inner)});
    }
}

/// Ops of several outputs are timed by the first: the others cost nothing more, since all are made in one pass.
void add_gated(std::vector<OpCase>& cases, const Segments& segments) {
  using Vars = const std::vector<Var>&;
  cases.push_back({"split_silu", {stream(2 * inner + features)}, [](Vars v) {
                     return split_silu(v[0], {inner, inner, features})[0];
                   }});
  cases.push_back(
      {"offset_scale", {stream(features), leaf({4, features}), leaf({4, features})}, [ids = ids_below(length)](Vars v) {
         return offset_scale(v[0], v[1], v[2], ids, RotaryOptions{})[0];
       }});
  cases.push_back({"gated_linear",
                   {stream(inner), stream(inner), weight(width, inner)},
                   [](Vars v) { return gated_linear(v[0], v[1], v[2]); },
                   product(inner, width)});
  ChunkLinearOptions options;  // two chunks: one is written into the state, the other reads it
  options.causal = true;
  cases.push_back({"chunk_linear_attention",
                   {stream(features), stream(features), stream(inner)},
                   [=](Vars v) { return chunk_linear_attention(v[0], v[1], v[2], segments, options); },
                   product(features, inner)});
}

}  // namespace

std::vector<OpCase> op_cases() {
  std::vector<OpCase> cases;
  const Segments segments = Segments::full(batch, length);
  add_layers(cases);
  add_aft(cases, segments);
  add_fastformer(cases, segments);
  add_attention(cases, segments);
  add_gated(cases, segments);
  return cases;
}

}  // namespace capstan::bench
