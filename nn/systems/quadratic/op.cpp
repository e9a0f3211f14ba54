// The checks of attention's three entries, and what their pullbacks keep: the work is AttentionTiles' (tiles.hpp). The
// packed form exists so that one product makes q, k and v, and one its gradient.
#include "nn/systems/quadratic/op.hpp"

#include <algorithm>

#include "core/array/segments.hpp"
#include "core/array/visibility.hpp"
#include "core/autograd/grad_sink.hpp"
#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/machine/profile.hpp"
#include "nn/systems/quadratic/tiles.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// Throws std::invalid_argument unless the options fit the segments.
void check_options(const char* op, const Segments& segments, const AttentionOptions& options) {
  const Shape tokens = segments.ids().shape();
  const auto fits = [&](const Array& factor) { return factor.empty() || factor.shape() == tokens; };
  check(options.chunk >= 0, "{}: chunk {} is negative", op, options.chunk);
  check(options.tile >= 0, "{}: tile {} is negative", op, options.tile);
  check(fits(options.row_scale) && fits(options.output_scale),
        "{}: row_scale {} or output_scale {} does not fit segments {}", op, options.row_scale.shape(),
        options.output_scale.shape(), tokens);
}

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
  check_options("attention", segments, options);
  if (!bias) return;
  const int64_t reach = options.chunk > 0 ? std::min(options.chunk, segments.longest()) : segments.longest();
  check(bias.rank() == 2 && bias.dim(0) == heads && bias.dim(1) % 2 == 1 && bias.dim(1) >= 2 * reach - 1,
        "attention: bias {} is not ({}, 2N - 1) with N >= {}", bias.shape(), heads, reach);
}

void check_packed(const Var& qkv, const Segments& segments, const AttentionOptions& options) {
  const Shape tokens = segments.ids().shape();
  check(qkv.rank() == 3 && qkv.dim(0) == tokens[0] && qkv.dim(1) == tokens[1] && options.heads > 0 &&
            qkv.dim(2) % (3 * options.heads) == 0,
        "attention_packed: qkv {} is not (B, T, 3D) with the (B, T) of segments {} and D a multiple of {} heads",
        qkv.shape(), tokens, options.heads);
  check_options("attention_packed", segments, options);
}

/// Room for what the pullback needs of a softmax; empty where none is needed.
Array make_statistics(const std::vector<Var>& inputs, const AttentionLayout& layout) {
  if (layout.options.kernel != AttentionKernel::softmax || !recording(inputs)) return Array();
  return Array(Shape{2, layout.options.heads, layout.segments.ids().size()});
}

void run_forward(const AttentionLayout& layout, const AttentionInputs& inputs, Array& output, Array& statistics) {
  real* const out = output.mutable_data();
  clear_padding(out, output.dim(2), layout.segments);
  AttentionTiles(layout, inputs).forward(out, statistics.empty() ? nullptr : statistics.mutable_data());
}

void run_backward(const AttentionLayout& layout, const AttentionInputs& inputs, const AttentionResults& results,
                  AttentionGradients gradients, const GradSink& dbias) {
  gradients.dbias = dbias.data();
  if (dbias && dbias.beta() == 0) std::fill_n(dbias.data(), inputs.bias.size(), real{0});
  AttentionTiles(layout, inputs).backward(results, gradients);
}

}  // namespace

Array visible_counts(const Segments& segments, bool causal, int64_t chunk, int64_t past) {
  const int64_t length = segments.length();
  Array counts = Array::zeros(segments.ids().shape());
  real* const out = counts.mutable_data();
  for (const Segments::Span& span : segments.spans()) {
    const int64_t end = past + span.length();
    for (int64_t i = past; i < end; ++i) {
      const int64_t first = chunk > 0 ? i / chunk * chunk : 0;
      const int64_t last = chunk > 0 ? std::min(first + chunk, end) : end;
      out[span.row * length + span.begin + i - past] = static_cast<real>((causal ? i + 1 : last) - first);
    }
  }
  return counts;
}

Var attention(const Var& q, const Var& k, const Var& v, const Var& bias, const Segments& segments,
              const AttentionOptions& options) {
  const ProfileSpan span;
  check_inputs(q, k, v, bias, segments, options);
  const int64_t heads = options.heads;
  const AttentionLayout layout{segments, options, q.dim(2) / heads, v.dim(2) / heads, options.tile};
  const std::vector<Var> inputs{q, k, v, bias};
  Array output(v.shape()), statistics = make_statistics(inputs, layout);
  const auto rows = [](const Array& x) { return TokenRows<const real>{x.data(), x.dim(2)}; };
  const auto arguments = [rows](const Array& q_, const Array& k_, const Array& v_, const Array& bias_) {
    return AttentionInputs{rows(q_), rows(k_), rows(v_), bias_};
  };
  const Array bias_value = bias ? bias.value() : Array();
  run_forward(layout, arguments(q.value(), k.value(), v.value(), bias_value), output, statistics);
  const Array kept = statistics.empty() ? Array() : output;
  return make_var("attention", output, inputs,
                  [q = q.value(), k = k.value(), v = v.value(), bias = bias_value, kept, statistics, layout, arguments](
                      const Array& dy, const Needs& needs) -> Grads {
                    Array dq(q.shape()), dk(k.shape()), dv(v.shape());
                    const auto out = [](Array& x) { return TokenRows<real>{x.mutable_data(), x.dim(2)}; };
                    GradSink dbias(needs, 3, bias.shape());
                    run_backward(layout, arguments(q, k, v, bias), {kept.data(), statistics.data(), dy.data()},
                                 {out(dq), out(dk), out(dv), nullptr}, dbias);
                    for (Array* gradient : {&dq, &dk, &dv})
                      clear_padding(gradient->mutable_data(), gradient->dim(2), layout.segments);
                    return {dq, dk, dv, dbias.grad()};
                  });
}

Array attention_continue(const AttentionPast& in, const AttentionOptions& options) {
  const ProfileSpan span;
  const int64_t key_width = in.k.dim(2), value_width = in.v.dim(2), heads = options.heads;
  AttentionOptions in_floats = options;
  in_floats.bf16 = false;
  const AttentionLayout layout{Segments::full(in.batch, in.length),
                               in_floats,
                               key_width / heads,
                               value_width / heads,
                               options.tile,
                               in.past,
                               in.key_rows};
  Array output(Shape{in.batch, in.length, value_width}), no_statistics;
  run_forward(layout, {{in.q, in.q_stride}, {in.k.data(), key_width}, {in.v.data(), value_width}, in.bias}, output,
              no_statistics);
  return output;
}

Var attention_packed(const Var& qkv, const Segments& segments, const AttentionOptions& options) {
  const ProfileSpan span;
  check_packed(qkv, segments, options);
  const int64_t width = qkv.dim(2) / 3, head = width / options.heads;
  const AttentionLayout layout{segments, options, head, head, options.tile};
  Array output(Shape{qkv.dim(0), qkv.dim(1), width}), statistics = make_statistics({qkv}, layout);
  const auto arguments = [width](const real* x) {
    return AttentionInputs{{x, 3 * width}, {x + width, 3 * width}, {x + 2 * width, 3 * width}, Array()};
  };
  run_forward(layout, arguments(qkv.value().data()), output, statistics);
  const Array kept = statistics.empty() ? Array() : output;
  return make_var(
      "attention_packed", output, {qkv},
      [qkv = qkv.value(), kept, statistics, layout, width, arguments](const Array& dy, const Needs&) -> Grads {
        Array dqkv(qkv.shape());
        real* const d = dqkv.mutable_data();
        GradSink no_bias;
        run_backward(layout, arguments(qkv.data()), {kept.data(), statistics.data(), dy.data()},
                     {{d, 3 * width}, {d + width, 3 * width}, {d + 2 * width, 3 * width}, nullptr}, no_bias);
        clear_padding(d, 3 * width, layout.segments);
        return {dqkv};
      });
}

}  // namespace capstan::CAPSTAN_PRECISION
