// The state M runs over the chunks of a document in order: what a chunk reads is the sum over the full chunks in front
// of it. Everything is matrix products of a chunk, one after the other; documents go to different threads. The pullback
// runs M once more for dq, and its mirror image from the last chunk back for dk and dv.
#include "nn/systems/flash/chunk_linear.hpp"

#include <algorithm>

#include "core/array/segments.hpp"
#include "core/base/error.hpp"
#include "core/base/sizes.hpp"
#include "core/machine/parallel.hpp"
#include "core/machine/profile.hpp"
#include "core/products/gemm.hpp"

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
/// what add(chunk, beta) has added for the chunks already passed or, if bidirectional, for the only chunk itself. add
/// computes product + beta * state. The first causal chunk, whose state is empty, goes to `empty` instead.
template <class Iterator, class Add, class Read, class Empty>
void for_each_state(Iterator begin, Iterator end, bool causal, const Add& add, const Read& read, const Empty& empty) {
  if (!causal) {
    add(*begin, real{0});
    return read(*begin);
  }
  empty(*begin);
  for (Iterator chunk = begin; std::next(chunk) != end; ++chunk) {
    add(*chunk, chunk == begin ? real{0} : real{1});
    read(*std::next(chunk));
  }
}

/// body(chunks, state) for every document; `state` is work space of `size` elements. Documents go one to a
/// thread; where one is longer than the others together they follow each other, and threads share every product.
template <class Body>
void for_each_document(const Segments& segments, const ChunkLinearOptions& options, int64_t size, const Body& body) {
  const std::vector<Segments::Span>& spans = segments.spans();
  const bool alone = in_parallel() || segments.valid() < 2 * segments.longest();
  const FixedThreads fixed;
  Array work(Shape{alone ? 1 : team_size(), size});
  real* const states = work.mutable_data();
  const auto run_document = [&](const Segments::Span& span, real* state) {
    body(chunks_of(span, segments.length(), options), state);
  };
  if (alone) {
    for (const Segments::Span& span : spans) run_document(span, states);
  } else {
    parallel_units(static_cast<int64_t>(spans.size()), [&](int64_t index) {
      run_document(spans[static_cast<size_t>(index)], states + thread_index() * size);
    });
  }
}

/// Matrices (rows, width) of which chunks are taken.
struct Rows {
  const real* data;
  int64_t width;
  MatrixView at(const Chunk& chunk, Transpose transpose = Transpose::no) const {
    return {data + chunk.first * width, width, transpose};
  }
};
/// As Rows, to be written.
struct MutableRows {
  real* data;
  int64_t width;
  real* at(const Chunk& chunk) const { return data + chunk.first * width; }
  void clear(const Chunk& chunk) const { std::fill_n(at(chunk), chunk.rows * width, real{0}); }
};

Rows rows_of(const Array& array) { return {array.data(), array.dim(2)}; }
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
  check(options.normaliser != ChunkNormaliser::constant || options.constant > 0,
        "chunk_linear_attention: the constant normaliser must be positive, got {}", options.constant);
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
  const Rows k = rows_of(in.k), v = rows_of(in.v);
  for_each_document(in.segments, in.options, k.width * v.width, [&](const std::vector<Chunk>& chunks, real* m) {
    for_each_state(
        chunks.begin(), chunks.end(), in.options.causal,
        [&](const Chunk& c, real beta) {
          gemm(k.width, v.width, c.rows, k.at(c, Transpose::yes), v.at(c), m, v.width, 1, beta);
        },
        [&](const Chunk& c) { read(c, m); }, [&](const Chunk& c) { out.clear(c); });
  });
}

/// O = Q M / n.
Array forward(const Operands& in) {
  Array y(in.v.shape());
  const Rows q = rows_of(in.q);
  const MutableRows o = mutable_rows(y, in.segments);
  read_states(in, o, [&](const Chunk& c, const real* m) {
    gemm(c.rows, o.width, q.width, q.at(c), {m, o.width}, o.at(c), o.width, c.scale);
  });
  return y;
}

/// dQ = dO M^T / n.
Array query_gradient(const Operands& in, const Array& dy) {
  Array gradient(in.q.shape());
  const Rows d = rows_of(dy);
  const MutableRows dq = mutable_rows(gradient, in.segments);
  read_states(in, dq, [&](const Chunk& c, const real* m) {
    gemm(c.rows, dq.width, d.width, d.at(c), {m, d.width, Transpose::yes}, dq.at(c), dq.width, c.scale);
  });
  return gradient;
}

/// The mirror image N of M, the sum of Q^T dO / n, runs backward: dK = V N^T, dV = K N.
std::pair<Array, Array> key_value_gradients(const Operands& in, const Array& dy) {
  const Rows d = rows_of(dy), q = rows_of(in.q), k = rows_of(in.k), v = rows_of(in.v);
  const int64_t keys = k.width, values = v.width;
  std::pair<Array, Array> gradients{Array(in.k.shape()), Array(in.v.shape())};
  const MutableRows dk = mutable_rows(gradients.first, in.segments), dv = mutable_rows(gradients.second, in.segments);
  for_each_document(in.segments, in.options, keys * values, [&](const std::vector<Chunk>& chunks, real* mirror) {
    for_each_state(
        chunks.rbegin(), chunks.rend(), in.options.causal,
        [&](const Chunk& c, real beta) {
          gemm(keys, values, c.rows, q.at(c, Transpose::yes), d.at(c), mirror, values, c.scale, beta);
        },
        [&](const Chunk& c) {
          gemm(c.rows, keys, values, v.at(c), {mirror, values, Transpose::yes}, dk.at(c), keys);
          gemm(c.rows, values, keys, k.at(c), {mirror, values}, dv.at(c), values);
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
  switch (options.normaliser) {
    case ChunkNormaliser::counted:
      return real{1} / static_cast<real>(keys);
    case ChunkNormaliser::chunks:
      return real{1} / static_cast<real>(round_up(keys, options.chunk));
    case ChunkNormaliser::constant:
      return static_cast<real>(1 / options.constant);
  }
  throw std::logic_error("chunk_linear_attention: unknown normaliser");
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
