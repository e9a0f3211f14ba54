// Angles are computed in double and rounded once. tests/nn/systems/gated/test_op.cpp.
#include "core/fused/rotary_tables.hpp"

#include <algorithm>
#include <vector>

#include "core/base/math.hpp"
#include "core/machine/parallel.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

// A position is block * positions_per_block + rest: its cosine and sine are products of those of both parts, so that
// long tables need few calls of cos and sin. Rows that are made one by one take the same way, for the same bits.
constexpr int64_t positions_per_block = 64;

int64_t block_of(int64_t position) {
  return position >= 0 ? position / positions_per_block : -((positions_per_block - 1 - position) / positions_per_block);
}

/// cos and sin of position * frequency, for every frequency.
struct Turns {
  explicit Turns(size_t count) : cosine(count), sine(count) {}
  void set(int64_t position, const std::vector<double>& frequencies) {
    for (size_t i = 0; i < frequencies.size(); ++i) {
      const double angle = static_cast<double>(position) * frequencies[i];
      cosine[i] = math::cos(angle);
      sine[i] = math::sin(angle);
    }
  }
  std::vector<double> cosine, sine;
};

/// One table row: cos and sin of the sums of the angles in `a` and `b`, by the addition theorems.
void write_row(const Turns& a, const Turns& b, real* cosine, real* sine) {
  const double *const ac = a.cosine.data(), *const as = a.sine.data(), *const bc = b.cosine.data(),
                      *const bs = b.sine.data();
  const size_t count = a.cosine.size();
#pragma omp simd
  for (size_t i = 0; i < count; ++i) {
    cosine[i] = static_cast<real>(ac[i] * bc[i] - as[i] * bs[i]);
    sine[i] = static_cast<real>(as[i] * bc[i] + ac[i] * bs[i]);
  }
}

/// Fills the rows of the tables.
struct Writer {
  std::vector<double> frequencies;
  real *cosine, *sine;

  int64_t pairs() const { return static_cast<int64_t>(frequencies.size()); }
  void write_position(int64_t row, int64_t position) const {
    Turns whole(frequencies.size()), rest(frequencies.size());
    whole.set(block_of(position) * positions_per_block, frequencies);
    rest.set(position - block_of(position) * positions_per_block, frequencies);
    write_row(whole, rest, cosine + row * pairs(), sine + row * pairs());
  }
  /// Rows of positions first, first + 1, ..., first + count - 1.
  void write_range(int64_t first, int64_t count) const {
    std::vector<Turns> rests;
    for (int64_t rest = 0; rest < positions_per_block; ++rest) {
      rests.emplace_back(frequencies.size());
      rests.back().set(rest, frequencies);
    }
    const int64_t first_block = block_of(first), blocks = block_of(first + count - 1) - first_block + 1;
    parallel_for(blocks, std::max<int64_t>(1, 16384 / (positions_per_block * pairs())),
                 [&](int64_t begin, int64_t end) {
                   Turns whole(frequencies.size());
                   for (int64_t block = first_block + begin; block < first_block + end; ++block) {
                     whole.set(block * positions_per_block, frequencies);
                     const int64_t low = std::max(first, block * positions_per_block),
                                   high = std::min(first + count, (block + 1) * positions_per_block);
                     for (int64_t position = low; position < high; ++position)
                       write_row(whole, rests[static_cast<size_t>(position - block * positions_per_block)],
                                 cosine + (position - first) * pairs(), sine + (position - first) * pairs());
                   }
                 });
  }
};

}  // namespace

RotaryTables rotary_tables(const Ids& positions, int64_t pairs, double base) {
  const int64_t count = positions.size();
  int64_t lowest = 0, span = 0;
  if (count > 0) {
    const auto [low, high] = std::minmax_element(positions.data(), positions.data() + count);
    lowest = *low;
    span = int64_t{*high} - lowest + 1;
  }
  const bool shared = span <= count;
  const int64_t table_rows = shared ? span : count;
  RotaryTables tables{Array(Shape{table_rows, pairs}), Array(Shape{table_rows, pairs}), Ids(Shape{count})};
  Writer writer{std::vector<double>(static_cast<size_t>(pairs)), tables.cosine.mutable_data(),
                tables.sine.mutable_data()};
  for (int64_t pair = 0; pair < pairs; ++pair)
    writer.frequencies[static_cast<size_t>(pair)] =
        math::pow(base, -static_cast<double>(pair) / static_cast<double>(pairs));
  int32_t* const rows = tables.rows.mutable_data();
  for (int64_t row = 0; row < count; ++row) rows[row] = static_cast<int32_t>(shared ? positions[row] - lowest : row);
  if (shared && table_rows >= positions_per_block) {
    writer.write_range(lowest, table_rows);
    return tables;
  }
  parallel_each(table_rows, 8,
                [&](int64_t row) { writer.write_position(row, shared ? lowest + row : positions[row]); });
  return tables;
}

}  // namespace capstan::CAPSTAN_PRECISION
