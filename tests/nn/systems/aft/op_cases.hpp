// The cases every AFT op is tested on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nn/systems/aft/composed.hpp"
#include "nn/systems/aft/op.hpp"
#include "tests/support/ragged.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

/// An op on (qkv, its parameters), fused and composed, with the shapes of the parameters.
struct AftCase {
  std::string name;
  int64_t packed;  // columns of qkv
  std::vector<Shape> parameters;
  bool causal;
  std::function<Var(const std::vector<Var>&, const Segments&)> fused, composed;
};

/// All ops and options for documents of up to `longest` tokens.  width: D.  tile: targets of a tile.
inline std::vector<AftCase> aft_cases(int64_t width, int64_t longest, int64_t tile = 0) {
  const AftOptions options{tile};
  std::vector<AftCase> cases;
  for (const bool causal : {true, false}) {
    const std::string direction = causal ? " causal" : " bidirectional";
    cases.push_back({"simple" + direction,
                     3 * width,
                     {},
                     causal,
                     [=](const auto& in, const Segments& s) { return aft_simple(in[0], s, causal); },
                     [=](const auto& in, const Segments& s) { return aft_simple_composed(in[0], s, causal); }});
    for (const int64_t window : {0, 1, 5}) {
      const std::string suffix = direction + " window " + std::to_string(window);
      cases.push_back({"factorised" + suffix,
                       3 * width,
                       {{longest + 2, 3}, {longest + 2, 3}},
                       causal,
                       [=](const auto& in, const Segments& s) {
                         return aft_factorised(in[0], in[1], in[2], s, causal, window, options);
                       },
                       [=](const auto& in, const Segments& s) {
                         return aft_factorised_composed(in[0], in[1], in[2], s, causal, window);
                       }});
      cases.push_back(
          {"dense" + suffix,
           3 * width,
           {{longest + 2, longest + 2}},
           causal,
           [=](const auto& in, const Segments& s) { return aft_dense(in[0], in[1], s, causal, window, options); },
           [=](const auto& in, const Segments& s) { return aft_dense_composed(in[0], in[1], s, causal, window); }});
    }
    for (const int64_t heads : {int64_t{1}, int64_t{5}}) {
      const int64_t window = 4;
      cases.push_back({"conv" + direction + " heads " + std::to_string(heads),
                       2 * width + heads,
                       {{heads, causal ? window : 2 * window - 1}},
                       causal,
                       [=](const auto& in, const Segments& s) { return aft_conv(in[0], in[1], s, causal, options); },
                       [=](const auto& in, const Segments& s) { return aft_conv_composed(in[0], in[1], s, causal); }});
    }
  }
  return cases;
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
