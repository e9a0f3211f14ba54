// The passes of the gated attention unit against their compositions, and the tables of rotary angles.
#include <doctest/doctest.h>

#include <cmath>

#include "core/fused/linear.hpp"
#include "core/fused/rotary.hpp"
#include "core/fused/rotary_tables.hpp"
#include "core/ops/ops.hpp"
#include "nn/systems/gated/composed.hpp"
#include "nn/systems/gated/gated_linear.hpp"
#include "nn/systems/gated/op.hpp"
#include "tests/support/agreement.hpp"
#include "tests/support/ragged.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

Ids sequence(int64_t batch, int64_t length, int32_t start) {
  Ids positions(Shape{batch, length});
  for (int64_t i = 0; i < positions.size(); ++i) positions.mutable_data()[i] = start + static_cast<int32_t>(i % length);
  return positions;
}

std::vector<std::optional<RotaryOptions>> turns() {
  std::vector<std::optional<RotaryOptions>> all{std::nullopt};
  for (const RotaryPairs pairs : {RotaryPairs::interleaved, RotaryPairs::halves})
    all.push_back(RotaryOptions{100, pairs});
  return all;
}

}  // namespace

TEST_CASE("split_silu equals silu and split") {
  // Widths below, at and past a register; enough rows for two threads.
  for (const auto& widths : std::vector<std::vector<int64_t>>{{1}, {5, 35, 3}, {32, 32, 16}, {70, 1, 1, 9}}) {
    int64_t columns = 0;
    for (const int64_t width : widths) columns += width;
    for (const Shape& rows : {Shape{2, 7}, Shape{3, 300}, Shape{}}) {
      check_agreement(
          "split_silu", [&](const auto& v) { return concatenate(split_silu(v[0], widths), -1); },
          [&](const auto& v) { return concatenate(split_silu_composed(v[0], widths), -1); }, {rows.append(columns)}, 3);
    }
    // Outputs that nobody uses get a zero gradient.
    check_agreement(
        "the last part of split_silu", [&](const auto& v) { return split_silu(v[0], widths).back(); },
        [&](const auto& v) { return split_silu_composed(v[0], widths).back(); }, {Shape{3, 11, columns}});
  }
}

TEST_CASE("gated_linear equals gate and linear, past the rows it works on at a time") {
  for (const Shape& rows : {Shape{2, 7}, Shape{2, 2100}, Shape{}, Shape{0, 5}}) {
    const Shape x = rows.append(35), weight{19, 35};
    check_agreement(
        "gated_linear", [](const auto& v) { return gated_linear(v[0], v[1], v[2], v[3]); },
        [](const auto& v) { return linear(v[0] * v[1], v[2], v[3]); }, {x, x, weight, {19}});
    check_agreement(
        "gated_linear without bias", [](const auto& v) { return gated_linear(v[0], v[1], v[2]); },
        [](const auto& v) { return linear(v[0] * v[1], v[2]); }, {x, x, weight});
  }
  const auto gate = [](const Var& x) { return x * 2; };  // values that nobody else holds are written over
  check_agreement(
      "gated_linear of intermediate values", [&](const auto& v) { return gated_linear(gate(v[0]), gate(v[1]), v[2]); },
      [&](const auto& v) { return linear(gate(v[0]) * gate(v[1]), v[2]); }, {{5, 35}, {5, 35}, {19, 35}});
  check_agreement(
      "gated_linear of one value twice", [&](const auto& v) { return gated_linear(gate(v[0]), gate(v[0]), v[1]); },
      [&](const auto& v) { return linear(square(gate(v[0])), v[1]); }, {{5, 35}, {19, 35}});
  const auto same = [&](const Var& x, const Var& w) {
    const Var y = gate(x);
    return gated_linear(y, y, w);
  };
  check_agreement(
      "gated_linear of the same value", [&](const auto& v) { return same(v[0], v[1]); },
      [&](const auto& v) { return linear(square(gate(v[0])), v[1]); }, {{5, 35}, {19, 35}});
  CHECK_THROWS_WITH_AS(gated_linear(Var(Array::zeros({5, 4})), Var(Array::zeros({5, 3})), Var(Array::zeros({2, 3}))),
                       "gated_linear: gate (5, 4) and x (5, 3) differ", std::invalid_argument);
}

TEST_CASE("offset_scale equals its composition, with and without rotary positions") {
  for (const int64_t width : {8, 34, 70}) {
    for (const int64_t copies : {1, 2, 4}) {
      for (const auto& turn : turns()) {
        for (const Ids& positions : {ragged_segments(13).positions(), sequence(3, 130, 5), sequence(1, 1, 100000)}) {
          const Shape z{positions.dim(0), positions.dim(1), width}, table{copies, width};
          check_agreement(
              "offset_scale",
              [&](const auto& v) { return concatenate(offset_scale(v[0], v[1], v[2], positions, turn), 0); },
              [&](const auto& v) { return concatenate(offset_scale_composed(v[0], v[1], v[2], positions, turn), 0); },
              {z, table, table});
        }
      }
    }
    const Ids positions = sequence(2, 9, 0);
    check_agreement(
        "the second view of offset_scale",
        [&](const auto& v) { return offset_scale(v[0], v[1], v[2], positions, RotaryOptions{})[1]; },
        [&](const auto& v) { return offset_scale_composed(v[0], v[1], v[2], positions, RotaryOptions{})[1]; },
        {Shape{2, 9, width}, Shape{3, width}, Shape{3, width}});
  }
}

TEST_CASE("rotary_series equals products with tables, past the block of distances handled at a time") {
  for (const int64_t pairs : {1, 5, 64}) {
    for (const int64_t length : {1, 2, 65, 5000}) {
      check_agreement(
          "rotary_series", [&](const auto& v) { return rotary_series(v[0], v[1], length, 10000); },
          [&](const auto& v) { return rotary_series_composed(v[0], v[1], length, 10000); },
          {Shape{pairs}, Shape{pairs}});
    }
  }
}

TEST_CASE("the gated ops name what does not fit") {
  const auto zeros = [](const Shape& shape) { return Var(Array::zeros(shape)); };
  const Ids positions = sequence(2, 3, 0);
  CHECK_THROWS_AS(split_silu(zeros({2, 3, 5}), {2, 2}), std::invalid_argument);
  CHECK_THROWS_AS(split_silu(zeros({2, 3, 5}), {}), std::invalid_argument);
  CHECK_THROWS_AS(offset_scale(zeros({2, 3, 4}), zeros({2, 5}), zeros({2, 5}), positions), std::invalid_argument);
  CHECK_THROWS_AS(offset_scale(zeros({2, 3, 4}), zeros({2, 4}), zeros({1, 4}), positions), std::invalid_argument);
  CHECK_THROWS_AS(offset_scale(zeros({3, 2, 4}), zeros({2, 4}), zeros({2, 4}), positions), std::invalid_argument);
  CHECK_THROWS_AS(rotary_series(zeros({3}), zeros({2}), 4, 10000), std::invalid_argument);
  CHECK_THROWS_AS(rotary_series(zeros({3}), zeros({3}), 0, 10000), std::invalid_argument);
  CHECK_THROWS_AS(offset_scale(zeros({2, 3, 5}), zeros({2, 5}), zeros({2, 5}), positions, RotaryOptions{}),
                  std::invalid_argument);
}

TEST_CASE("rotary tables hold the angles computed in double, at any position, also a negative or a distant one") {
  const int64_t pairs = 5;
  const double base = 10000;
  const auto compare = [&](const Ids& positions) {
    const RotaryTables tables = rotary_tables(positions, pairs, base);
    double worst = 0;
    for (int64_t i = 0; i < positions.size(); ++i) {
      for (int64_t pair = 0; pair < pairs; ++pair) {
        const double angle = positions[i] * std::pow(base, -static_cast<double>(pair) / static_cast<double>(pairs));
        const int64_t at = tables.rows[i] * pairs + pair;
        worst = std::max({worst, std::abs(static_cast<double>(tables.cosine[at]) - std::cos(angle)),
                          std::abs(static_cast<double>(tables.sine[at]) - std::sin(angle))});
      }
    }
    CHECK(worst <= (sizeof(real) == 8 ? 1e-10 : 6e-8));
  };
  compare(sequence(1, 1, 0));
  compare(sequence(2, 300, -150));
  compare(sequence(1, 200, 65500));
  compare(Ids(Shape{2, 2}, std::vector<int32_t>{0, 1000000, -77, 12}));
  // Whatever else stands in the batch, a position's numbers are the same bits.
  const RotaryTables many = rotary_tables(sequence(1, 400, 0), pairs, base);
  for (const int32_t position : {0, 1, 63, 64, 65, 399}) {
    const RotaryTables one = rotary_tables(Ids(Shape{1, 1}, position), pairs, base);
    for (int64_t pair = 0; pair < pairs; ++pair) {
      CHECK(one.cosine[pair] == many.cosine[position * pairs + pair]);
      CHECK(one.sine[pair] == many.sine[position * pairs + pair]);
    }
  }
}
