#include "core/ops_attention.hpp"

#include <algorithm>
#include <atomic>

#include "core/error.hpp"
#include "core/ops_attention_composed.hpp"

CAPSTAN_BEGIN
namespace {

std::atomic<int64_t> forced_tile{0};

void check_inputs(const Var& q, const Var& k, const Var& v, const Var& bias, const Segments& segments,
                  const AttentionOptions& options) {
  const Shape tokens = segments.ids().shape();
  const int64_t heads = options.heads;
  const auto fits = [&](const Var& x) {
    return x.rank() == 3 && x.dim(0) == tokens[0] && x.dim(1) == tokens[1] && heads > 0 && x.dim(2) % heads == 0;
  };
  check(fits(q) && fits(k) && fits(v) && q.dim(2) == k.dim(2),
        "attention: q {}, k {} and v {} are not (B, T, H Z), (B, T, H Z) and (B, T, H E) for {} heads and segments {}",
        q.shape(), k.shape(), v.shape(), heads, tokens);
  check(options.chunk >= 0, "attention: chunk {} is negative", options.chunk);
  const auto fits_factor = [&](const Array& factor) { return factor.empty() || factor.shape() == tokens; };
  check(fits_factor(options.row_scale) && fits_factor(options.output_scale),
        "attention: row_scale {} or output_scale {} does not fit segments {}", options.row_scale.shape(),
        options.output_scale.shape(), tokens);
  if (!bias) return;
  const int64_t reach = options.chunk > 0 ? std::min(options.chunk, segments.longest()) : segments.longest();
  check(bias.rank() == 2 && bias.dim(0) == heads && bias.dim(1) % 2 == 1 && bias.dim(1) >= 2 * reach - 1,
        "attention: bias {} is not ({}, 2N - 1) with N >= {}", bias.shape(), heads, reach);
}

}  // namespace

void set_attention_tile(int64_t length) { forced_tile = length; }

Array visible_counts(const Segments& segments, bool causal, int64_t chunk) {
  const int64_t length = segments.length();
  Array counts = Array::zeros(segments.ids().shape());
  real* const out = counts.mutable_data();
  for (const Segments::Span& span : segments.spans()) {
    for (int64_t i = 0; i < span.length(); ++i) {
      const int64_t first = chunk > 0 ? i / chunk * chunk : 0;
      const int64_t last = chunk > 0 ? std::min(first + chunk, span.length()) : span.length();
      out[span.row * length + span.begin + i] = static_cast<real>((causal ? i + 1 : last) - first);
    }
  }
  return counts;
}

Var attention(const Var& q, const Var& k, const Var& v, const Var& bias, const Segments& segments,
              const AttentionOptions& options) {
  check_inputs(q, k, v, bias, segments, options);
  return attention_composed(q, k, v, bias, segments, options);
}

CAPSTAN_END
