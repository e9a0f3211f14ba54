// aft_simple(). Causal, it is a scan over the tokens of each document (kernels/scan.hpp), documents and blocks of
// channels side by side. The pullback takes pieces of 128 tokens from the last to the first: from the state in front of
// a piece, which was saved, it forms the piece's gates and averages again, in the cache. Bidirectional, a document has
// one average.
#include <algorithm>

#include "core/array/segments.hpp"
#include "core/array/visibility.hpp"
#include "core/base/error.hpp"
#include "core/fused/linear_products.hpp"
#include "core/machine/parallel.hpp"
#include "core/machine/profile.hpp"
#include "nn/systems/aft/kernels/scan.hpp"
#include "nn/systems/aft/op.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// Channels that one thread carries through a whole document: four AVX-512 registers of float.
constexpr int64_t block = 64;  // also the room of a Running

/// Tokens whose gates and averages the pullback forms at once: with a block of channels, 64 KB.
constexpr int64_t piece = 128;

/// body(span index, span, first channel, channels) for every document and block of channels; units are independent.
template <class Body>
void for_each_unit(const Segments& segments, int64_t channels, const Body& body) {
  const int64_t blocks = (channels + block - 1) / block;
  const int64_t spans = static_cast<int64_t>(segments.spans().size());
  parallel_units(spans * blocks, [&](int64_t unit) {
    const int64_t span = unit / blocks, first = unit % blocks * block;
    body(span, segments.spans()[static_cast<size_t>(span)], first, std::min(block, channels - first));
  });
}

kernels::AftInput input_at(const real* qkv, int64_t width, int64_t row, int64_t channel) {
  const real* const q = qkv + row * 3 * width + channel;
  return {q, q + width, q + 2 * width, 3 * width};
}

kernels::AftGradient gradient_at(real* dqkv, int64_t width, int64_t row, int64_t channel) {
  real* const q = dqkv + row * 3 * width + channel;
  return {q, q + width, q + 2 * width, 3 * width};
}

void check_inputs(const Var& qkv, const Segments& segments) {
  check(qkv.rank() == 3 && qkv.dim(2) % 3 == 0 && qkv.dim(0) == segments.batch() && qkv.dim(1) == segments.length(),
        "aft_simple: qkv {} is not (B, T, 3D) with the (B, T) of segments {}", qkv.shape(), segments.ids().shape());
}

/// States (m, D, R) in front of every piece of a document but its first: (pieces, 3, width) for all documents.
class PieceStates {
 public:
  PieceStates(const Segments& segments, int64_t width) : width_(width) {
    int64_t count = 0;
    for (const Segments::Span& span : segments.spans()) {
      first_.push_back(count);
      count += std::max<int64_t>(span.length() - 1, 0) / piece;
    }
    states_ = Array(Shape{count, 3, width});
    data_ = states_.mutable_data();
  }

  /// That of piece 1, 2, ... of a document, at the given channel.
  kernels::AftState at(int64_t document, int64_t number, int64_t channel) const {
    real* const state = data_ + (first_[static_cast<size_t>(document)] + number - 1) * 3 * width_ + channel;
    return {state, state + width_, state + 2 * width_};
  }

 private:
  int64_t width_;
  std::vector<int64_t> first_;  // of each document
  Array states_;
  real* data_ = nullptr;  // of states_, which threads fill side by side
};

/// The working memory of one unit.
struct Running {
  real memory[5 * block];

  kernels::AftState state() { return {memory, memory + block, memory + 2 * block}; }
  kernels::AftReverse reverse() { return {memory + 3 * block, memory + 4 * block}; }
};

void copy_state(const kernels::AftState& from, const kernels::AftState& to, int64_t channels) {
  std::copy_n(from.maximum, channels, to.maximum);
  std::copy_n(from.weight, channels, to.weight);
  std::copy_n(from.average, channels, to.average);
}

/// dqkv may be qkv: a piece's gates are formed before its rows are written.
void scan_backward(const real* qkv, const Segments& segments, const PieceStates& states, const Array& dy, real* dqkv) {
  const int64_t length = dy.dim(1), width = dy.dim(2);
  clear_padding(dqkv, 3 * width, segments);
  for_each_unit(segments, width, [&](int64_t index, const Segments::Span& span, int64_t c, int64_t channels) {
    Running running;
    const kernels::AftReverse reverse = running.reverse();
    std::fill_n(reverse.b, 2 * block, real{0});
    real gate[piece * block], average[piece * block];
    for (int64_t number = (span.length() - 1) / piece; number >= 0; --number) {
      const int64_t row = span.row * length + span.begin + number * piece,
                    tokens = std::min(piece, span.length() - number * piece);
      const kernels::AftState state = running.state();
      if (number == 0)
        kernels::aft_state_clear(state, channels, channels);
      else
        copy_state(states.at(index, number, c), state, channels);
      const kernels::AftInput in = input_at(qkv, width, row, c);
      kernels::aft_gates(in, tokens, channels, state, gate, average);
      kernels::aft_scan_backward(in, tokens, channels, dy.data() + row * width + c, width, gate, average, reverse,
                                 gradient_at(dqkv, width, row, c));
    }
  });
}

/// Y = sigmoid(Q) R with the average R of the tokens so far.
Var causal_scan(const Var& qkv, const Segments& segments) {
  const int64_t length = qkv.dim(1), width = qkv.dim(2) / 3;
  const bool keep = recording({qkv});
  const PieceStates states(segments, keep ? width : 0);
  Array y(Shape{qkv.dim(0), length, width});
  real* const y_data = y.mutable_data();
  clear_padding(y_data, width, segments);
  for_each_unit(segments, width, [&](int64_t index, const Segments::Span& span, int64_t c, int64_t channels) {
    Running running;
    const kernels::AftState state = running.state();
    kernels::aft_state_clear(state, channels, channels);
    for (int64_t begin = 0; begin < span.length(); begin += piece) {
      const int64_t row = span.row * length + span.begin + begin;
      if (keep && begin > 0) copy_state(state, states.at(index, begin / piece, c), channels);
      kernels::aft_scan(input_at(qkv.value().data(), width, row, c), std::min(piece, span.length() - begin), channels,
                        state, y_data + row * width + c, width);
    }
  });
  return make_var("aft_simple", y, {qkv},
                  [x = qkv.value(), states, segments](const Array& dy, const Needs&) mutable -> Grads {
                    const real* const read = x.data();
                    Array dqkv = take_or_make(x);
                    scan_backward(read, segments, states, dy, dqkv.mutable_data());
                    return {std::move(dqkv)};
                  });
}

/// Y = sigmoid(Q) R with one average R for each document.
Var bidirectional_pool(const Var& qkv, const Segments& segments) {
  const int64_t length = qkv.dim(1), width = qkv.dim(2) / 3;
  const Shape per_document{static_cast<int64_t>(segments.spans().size()), width};
  Array y(Shape{qkv.dim(0), length, width}), logsum(per_document), average(per_document);
  real *const y_data = y.mutable_data(), *const logsum_data = logsum.mutable_data(),
              *const average_data = average.mutable_data();
  clear_padding(y_data, width, segments);
  for_each_unit(segments, width, [&](int64_t index, const Segments::Span& span, int64_t c, int64_t channels) {
    const int64_t row = span.row * length + span.begin, state = index * width + c;
    const kernels::AftInput in = input_at(qkv.value().data(), width, row, c);
    kernels::aft_pool(in, span.length(), channels, logsum_data + state, average_data + state);
    kernels::aft_pool_apply(in, span.length(), channels, average_data + state, y_data + row * width + c, width);
  });
  return make_var("aft_simple", y, {qkv},
                  [x = qkv.value(), logsum, average, segments, length, width](const Array& dy, const Needs&) -> Grads {
                    Array dqkv(x.shape());
                    real* const out = dqkv.mutable_data();
                    clear_padding(out, 3 * width, segments);
                    for_each_unit(
                        segments, width, [&](int64_t index, const Segments::Span& span, int64_t c, int64_t channels) {
                          const int64_t row = span.row * length + span.begin, state = index * width + c;
                          kernels::aft_pool_backward(input_at(x.data(), width, row, c), span.length(), channels,
                                                     dy.data() + row * width + c, width, logsum.data() + state,
                                                     average.data() + state, gradient_at(out, width, row, c));
                        });
                    return {dqkv};
                  });
}

}  // namespace

Array aft_simple_continue(const Array& qkv, AftRunning& state) {
  const ProfileSpan span;
  const int64_t batch = qkv.dim(0), length = qkv.dim(1), width = qkv.dim(2) / 3;
  Array y(Shape{batch, length, width});
  real *const out = y.mutable_data(), *const maximum = state.maximum.mutable_data(),
              *const weight = state.weight.mutable_data(), *const average = state.average.mutable_data();
  for_each_unit(Segments::full(batch, length), width,
                [&](int64_t, const Segments::Span& tokens, int64_t c, int64_t channels) {
                  const int64_t row = tokens.row * length, at = tokens.row * width + c;
                  kernels::aft_scan(input_at(qkv.data(), width, row, c), length, channels,
                                    {maximum + at, weight + at, average + at}, out + row * width + c, width);
                });
  return y;
}

Var aft_simple(const Var& qkv, const Segments& segments, bool causal) {
  const ProfileSpan span;
  check_inputs(qkv, segments);
  return causal ? causal_scan(qkv, segments) : bidirectional_pool(qkv, segments);
}

}  // namespace capstan::CAPSTAN_PRECISION
