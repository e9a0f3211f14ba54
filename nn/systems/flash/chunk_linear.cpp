// The state M runs over the chunks of a document in order: what a chunk reads is the sum over the full chunks in front
// of it. Everything is matrix products of a chunk, one after the other; documents go to different threads. The pullback
// runs M once more for dq, and its mirror image from the last chunk back for dk and dv.
#include "nn/systems/flash/chunk_linear.hpp"

#include <algorithm>

#include "core/array/segments.hpp"
#include "core/array/visibility.hpp"
#include "core/base/error.hpp"
#include "core/base/sizes.hpp"
#include "core/machine/parallel.hpp"
#include "core/machine/profile.hpp"
#include "core/products/rounded.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// Tokens of one chunk: `rows` of them from row `first` of the (B T, ...) matrices on; `scale` = 1 / n of its queries.
struct Chunk {
  int64_t first, rows;
  real scale;
};

/// The chunks of a document, in order. A bidirectional one is a single chunk, which sees itself.
std::vector<Chunk> chunks_of(const Segments::Span& span, int64_t length, const ChunkLinearOptions& options) {
  const int64_t first = span.row * length + span.begin, tokens = span.length();
  if (!options.causal) return {{first, tokens, chunk_linear_scale(options, tokens)}};
  std::vector<Chunk> chunks;
  for (int64_t begin = 0; begin < tokens; begin += options.chunk)
    chunks.push_back({first + begin, std::min(options.chunk, tokens - begin),
                      chunk_linear_scale(options, begin)});  // the chunks in front of it are full
  return chunks;
}

/// Calls read(chunk) for every chunk from `begin` to `end` (backwards for N). At each call, the state is the sum of
/// what add(chunk, whether the state holds something) has added for the chunks already passed or, if bidirectional, for
/// the only chunk itself. The first causal chunk, whose state is empty, goes to `empty` instead.
template <class Iterator, class Add, class Read, class Empty>
void for_each_state(Iterator begin, Iterator end, bool causal, const Add& add, const Read& read, const Empty& empty) {
  if (!causal) {
    add(*begin, false);
    return read(*begin);
  }
  empty(*begin);
  for (Iterator chunk = begin; std::next(chunk) != end; ++chunk) {
    add(*chunk, chunk != begin);
    read(*std::next(chunk));
  }
}

/// M or N of a document: work space of (keys, values) elements.
struct State {
  real* sums;
  Bf16* rounded;  // null where products are in floats
  int64_t keys, values;

  /// The state as an operand, times `scale` where it is rounded.
  Operand operand(real scale) const {
    if (rounded != nullptr) round_elements(rounded, sums, keys * values, scale);
    return {{sums, values}, {rounded, values}};
  }
};

/// body(chunks, state) for every document. Documents go one to a
/// thread; where one is longer than the others together they follow each other, and threads share every product.
template <class Body>
void for_each_document(const Segments& segments, const ChunkLinearOptions& options, int64_t keys, int64_t values,
                       const Body& body) {
  const std::vector<Segments::Span>& spans = segments.spans();
  const bool alone = in_parallel() || segments.valid() < 2 * segments.longest();
  const FixedThreads fixed;
  const Shape size{alone ? 1 : team_size(), keys * values};
  Array work(size);
  Bf16Array rounded_work;
  if (rounds_operands(options.bf16)) rounded_work = Bf16Array(size);
  real* const states = work.mutable_data();
  Bf16* const rounded = rounded_work.empty() ? nullptr : rounded_work.mutable_data();
  const auto run_document = [&](const Segments::Span& span, int64_t thread) {
    const int64_t at = thread * size[1];
    body(chunks_of(span, segments.length(), options),
         State{states + at, rounded == nullptr ? nullptr : rounded + at, keys, values});
  };
  if (alone) {
    for (const Segments::Span& span : spans) run_document(span, 0);
  } else {
    parallel_units(static_cast<int64_t>(spans.size()),
                   [&](int64_t index) { run_document(spans[static_cast<size_t>(index)], thread_index()); });
  }
}

/// Matrices (rows, width) of which chunks are taken. Chunks of whole sixteens are rounded, if that is wanted: other
/// sizes would make oneDNN prepare products of many shapes.
class Rows {
 public:
  Rows(const Array& array, const ChunkLinearOptions& options) : data_(array.data()), width_(array.dim(2)) {
    if (rounds_operands(options.bf16)) rounded_ = rounded_rows(data_, width_, array.size() / width_, width_);
  }
  int64_t width() const { return width_; }
  Operand at(const Chunk& chunk) const {
    const int64_t first = chunk.first * width_;
    return {{data_ + first, width_}, {is_rounded(chunk) ? rounded_.data() + first : nullptr, width_}};
  }
  /// The same, rounded after a multiplication by the chunk's scale.
  Operand scaled_at(const Chunk& chunk, Bf16Array& memory) const {
    if (!is_rounded(chunk)) return at(chunk);
    if (memory.size() < chunk.rows * width_) memory = Bf16Array(Shape{chunk.rows, width_});
    round_elements(memory.mutable_data(), data_ + chunk.first * width_, chunk.rows * width_, chunk.scale);
    return {{data_ + chunk.first * width_, width_}, {memory.data(), width_}};
  }

 private:
  bool is_rounded(const Chunk& chunk) const { return !rounded_.empty() && chunk.rows % 16 == 0; }

  const real* data_;
  int64_t width_;
  Bf16Array rounded_;
};
/// As Rows, to be written.
struct MutableRows {
  real* data;
  int64_t width;
  real* at(const Chunk& chunk) const { return data + chunk.first * width; }
  void clear(const Chunk& chunk) const { std::fill_n(at(chunk), chunk.rows * width, real{0}); }
};

/// C = scale * A B, where an operand that is rounded has the scale already.
void multiply_scaled(int64_t m, int64_t n, int64_t k, const Operand& a, const Operand& b, const MutableRows& c,
                     const Chunk& chunk) {
  if (a.is_rounded() && b.is_rounded()) return multiply(m, n, k, a, b, c.at(chunk), c.width, false);
  gemm(m, n, k, a.exact, b.exact, c.at(chunk), c.width, chunk.scale);
}
/// For a new array: the rows of padding are 0.
MutableRows mutable_rows(Array& array, const Segments& segments) {
  clear_padding(array.mutable_data(), array.dim(2), segments);
  return {array.mutable_data(), array.dim(2)};
}

void check_inputs(const Var& q, const Var& k, const Var& v, const Segments& segments,
                  const ChunkLinearOptions& options) {
  check(q.rank() == 3 && v.rank() == 3 && k.shape() == q.shape() && q.dim(0) == segments.batch() &&
            q.dim(1) == segments.length() && v.dim(0) == q.dim(0) && v.dim(1) == q.dim(1),
        "chunk_linear_attention: q {}, k {} and v {} are not (B, T, Z), (B, T, Z) and (B, T, E) with the (B, T) of "
        "segments {}",
        q.shape(), k.shape(), v.shape(), segments.ids().shape());
  check(options.chunk >= 1, "chunk_linear_attention: chunk must be at least 1, got {}", options.chunk);
}

/// What the pullback keeps.
struct Operands {
  Array q, k, v;
  Segments segments;
  ChunkLinearOptions options;
};

/// M runs forward: read(chunk, M) for the chunks that have others to read; in the rest, the rows of `out` are 0.
template <class Read>
void read_states(const Operands& in, const MutableRows& out, const Read& read) {
  const Rows k(in.k, in.options), v(in.v, in.options);
  for_each_document(in.segments, in.options, k.width(), v.width(),
                    [&](const std::vector<Chunk>& chunks, const State& m) {
                      for_each_state(
                          chunks.begin(), chunks.end(), in.options.causal,
                          [&](const Chunk& c, bool add) {
                            multiply(m.keys, m.values, c.rows, k.at(c).transposed(), v.at(c), m.sums, m.values, add);
                          },
                          [&](const Chunk& c) { read(c, m); }, [&](const Chunk& c) { out.clear(c); });
                    });
}

/// O = Q M / n.
Array forward(const Operands& in) {
  Array y(in.v.shape());
  const Rows q(in.q, in.options);
  const MutableRows o = mutable_rows(y, in.segments);
  read_states(in, o, [&](const Chunk& c, const State& m) {
    multiply_scaled(c.rows, m.values, m.keys, q.at(c), m.operand(c.scale), o, c);
  });
  return y;
}

/// dQ = dO M^T / n.
Array query_gradient(const Operands& in, const Array& dy) {
  Array gradient(in.q.shape());
  const Rows d(dy, in.options);
  const MutableRows dq = mutable_rows(gradient, in.segments);
  read_states(in, dq, [&](const Chunk& c, const State& m) {
    multiply_scaled(c.rows, m.keys, m.values, d.at(c), m.operand(c.scale).transposed(), dq, c);
  });
  return gradient;
}

/// The mirror image N of M, the sum of Q^T dO / n, runs backward: dK = V N^T, dV = K N.
std::pair<Array, Array> key_value_gradients(const Operands& in, const Array& dy) {
  const Rows d(dy, in.options), q(in.q, in.options), k(in.k, in.options), v(in.v, in.options);
  std::pair<Array, Array> gradients{Array(in.k.shape()), Array(in.v.shape())};
  const MutableRows dk = mutable_rows(gradients.first, in.segments), dv = mutable_rows(gradients.second, in.segments);
  for_each_document(
      in.segments, in.options, k.width(), v.width(), [&](const std::vector<Chunk>& chunks, const State& n) {
        Bf16Array scaled;
        for_each_state(
            chunks.rbegin(), chunks.rend(), in.options.causal,
            [&](const Chunk& c, bool add) {
              const Operand left = q.scaled_at(c, scaled).transposed(), right = d.at(c);
              if (left.is_rounded()) return multiply(n.keys, n.values, c.rows, left, right, n.sums, n.values, add);
              gemm(n.keys, n.values, c.rows, left.exact, right.exact, n.sums, n.values, c.scale, add ? 1 : 0);
            },
            [&](const Chunk& c) {
              const Operand sums = n.operand(1);
              multiply(c.rows, n.keys, n.values, v.at(c), sums.transposed(), dk.at(c), n.keys, false);
              multiply(c.rows, n.values, n.keys, k.at(c), sums, dv.at(c), n.values, false);
            },
            [&](const Chunk& c) {
              dk.clear(c);
              dv.clear(c);
            });
      });
  return gradients;
}

}  // namespace

real chunk_linear_scale(const ChunkLinearOptions& options, int64_t keys) {
  if (keys == 0) return 0;
  const bool whole_chunks = options.normaliser == ChunkNormaliser::chunks;
  return real{1} / static_cast<real>(whole_chunks ? round_up(keys, options.chunk) : keys);
}

Array chunk_linear_continue(const Array& q, const Array& k, const Array& v, int64_t position, Array& m,
                            const ChunkLinearOptions& options) {
  const ProfileSpan span;
  const int64_t batch = q.dim(0), length = q.dim(1), keys = q.dim(2), values = v.dim(2), chunk = options.chunk;
  const int64_t current = position % chunk, rows = current + length;
  check(k.shape() == Shape{batch, rows, keys} && v.shape() == Shape{batch, rows, values} &&
            m.shape() == Shape{batch, keys, values},
        "chunk_linear_continue: k {}, v {} and m {} do not fit q {} at position {}", k.shape(), v.shape(), m.shape(),
        q.shape(), position);
  Array y(Shape{batch, length, values});
  real *const out = y.mutable_data(), *const states = m.mutable_data();
  const auto run_sequence = [&](int64_t sequence) {
    real* const state = states + sequence * keys * values;
    for (int64_t begin = 0; begin < rows; begin += chunk) {  // of the chunk among the rows of k and v
      const int64_t end = std::min(begin + chunk, rows), first = std::max(begin, current),
                    seen = position - current + begin;
      real* const o = out + (sequence * length + first - current) * values;
      if (seen > 0)
        gemm(end - first, values, keys, {q.data() + (sequence * length + first - current) * keys, keys},
             {state, values}, o, values, chunk_linear_scale(options, seen));
      else
        std::fill_n(o, (end - first) * values, real{0});
      if (end - begin < chunk) return;
      gemm(keys, values, chunk, {k.data() + (sequence * rows + begin) * keys, keys, Transpose::yes},
           {v.data() + (sequence * rows + begin) * values, values}, state, values, 1, seen > 0 ? real{1} : real{0});
    }
  };
  if (batch > 1)
    parallel_units(batch, run_sequence);
  else if (batch == 1)
    run_sequence(0);
  return y;
}

Var chunk_linear_attention(const Var& q, const Var& k, const Var& v, const Segments& segments,
                           const ChunkLinearOptions& options) {
  const ProfileSpan span;
  check_inputs(q, k, v, segments, options);
  const Operands in{q.value(), k.value(), v.value(), segments, options};
  return make_var("chunk_linear_attention", forward(in), {q, k, v}, [in](const Array& dy, const Needs& needs) -> Grads {
    Grads grads(3);
    if (needs[0]) grads[0] = query_gradient(in, dy);
    if (needs[1] || needs[2]) {
      auto [dk, dv] = key_value_gradients(in, dy);
      if (needs[1]) grads[1] = std::move(dk);
      if (needs[2]) grads[2] = std::move(dv);
    }
    return grads;
  });
}

}  // namespace capstan::CAPSTAN_PRECISION
