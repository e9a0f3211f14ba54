// Products with packed weights: against three loops on the weights, or on the weights rounded to bf16.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/kernels/activation.hpp"
#include "core/products/kernels/gemv.hpp"
#include "core/products/packed_matrix.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/threads.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

/// The nearest number of 8 significant bits, ties to even.
real rounded(real x) {
  int exponent = 0;
  const double fraction = std::frexp(static_cast<double>(x), &exponent);
  return static_cast<real>(std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8));
}

Array stored(const Array& weight, DecodeWeights storage) {
  Array copy = weight.clone();
  real* const values = copy.mutable_data();
  for (int64_t i = 0; storage == DecodeWeights::bf16 && i < copy.size(); ++i) values[i] = rounded(values[i]);
  for (int64_t i = 0, in = copy.dim(1); storage == DecodeWeights::int8 && i < copy.dim(0); ++i) {
    real most = 0;
    for (int64_t k = 0; k < in; ++k) most = std::max(most, std::abs(values[i * in + k]));
    for (int64_t k = 0; k < in; ++k) values[i * in + k] = std::round(values[i * in + k] / (most / 127)) * (most / 127);
  }
  return copy;
}

/// x W^T + bias, summed in double.
Array reference(const Array& x, const Array& weight, const Array& bias) {
  const int64_t rows = x.dim(0), in = x.dim(1), out = weight.dim(0);
  Array y(Shape{rows, out});
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t o = 0; o < out; ++o) {
      double sum = bias.empty() ? 0 : static_cast<double>(bias[o]);
      for (int64_t k = 0; k < in; ++k)
        sum += static_cast<double>(x[row * in + k]) * static_cast<double>(weight[o * in + k]);
      y.mutable_data()[row * out + o] = static_cast<real>(sum);
    }
  }
  return y;
}

Array product(const PackedMatrix& matrix, const Array& x, const Array& bias, Activation activation) {
  Array y(Shape{x.dim(0), matrix.out()}, std::numeric_limits<real>::quiet_NaN());
  matrix.multiply(x.data(), x.dim(0), bias.empty() ? nullptr : bias.data(), activation, y.mutable_data());
  return y;
}

/// What becomes of one weight.
real through_storage(real weight, DecodeWeights storage = DecodeWeights::bf16) {
  PackedMemory memory;
  const PackedMatrix matrix(Array(Shape{1, 1}, weight), storage, memory);
  return product(matrix, Array(Shape{1, 1}, real{1}), Array(), Activation::none)[0];
}

}  // namespace

TEST_CASE("packed products agree with three loops: storages, ragged sizes, rows, bias, one and two threads") {
  for (const auto& storage : enum_names(DecodeWeights{})) {
    for (const int64_t out : {1, 16, 31, 32, 33, 63, 100, 517}) {
      for (const int64_t in : {1, 3, 8, 65, 300}) {
        const Array weight = normal_array({out, in}, 1), bias = normal_array({out}, 2);
        const Array used = stored(weight, storage.value);
        for (const int64_t rows : {1, 2, 3, 5, 7, 12}) {
          const Array x = normal_array({rows, in}, 3);
          for (const bool biased : {false, true}) {
            const Array b = biased ? bias : Array(), expected = reference(x, used, b);
            Array one_thread;
            for (const int count : {1, 2}) {
              const Threads threads_used(count);
              PackedMemory memory;
              const Array y = product(PackedMatrix(weight, storage.value, memory), x, b, Activation::none);
              INFO(storage.name, " ", out, " x ", in, ", rows ", rows, ", bias ", biased, ", threads ", count);
              CHECK(relative_error(y, expected, 0.1) <= fused_tolerance);
              if (count == 1) one_thread = y;
              CHECK(y.to_vector() == one_thread.to_vector());
            }
          }
        }
      }
    }
  }
}

TEST_CASE("a row of a packed product has the same bits alone and among any others, on one thread and on two") {
  for (const auto& storage : enum_names(DecodeWeights{})) {
    for (const int64_t out : {33, 517}) {
      for (const int64_t in : {1, 65, 300}) {
        const Array weight = normal_array({out, in}, 1), bias = normal_array({out}, 2), x = normal_array({64, in}, 3);
        PackedMemory memory;
        const PackedMatrix matrix(weight, storage.value, memory);
        const Threads one(1);
        std::vector<std::vector<real>> alone;
        for (int64_t row = 0; row < 64; ++row)
          alone.push_back(product(matrix, x.rows(row, row + 1), bias, Activation::silu).to_vector());
        for (const int64_t rows : {2, 3, 4, 5, 8, 13, 64}) {
          for (const int count : {1, 2}) {
            const Threads threads_used(count);
            const Array y = product(matrix, x.rows(64 - rows, 64), bias, Activation::silu);
            bool same = true;
            for (int64_t row = 0; row < rows; ++row)
              same = same && y.rows(row, row + 1).to_vector() == alone[static_cast<size_t>(64 - rows + row)];
            CHECK_MESSAGE(same, storage.name, " ", out, " x ", in, ", rows ", rows, ", threads ", count);
          }
        }
      }
    }
  }
}

TEST_CASE("packed products apply every activation to all outputs") {
  const Array weight = normal_array({517, 65}, 1), bias = normal_array({517}, 2), x = normal_array({3, 65}, 3);
  const Array pre = reference(x, weight, bias);
  PackedMemory memory;
  for (const auto& activation : enum_names(Activation{})) {
    Array expected(pre.shape());
    CAPSTAN_PRECISION::kernels::activation_forward({activation.value, 3, 517}, pre.data(), nullptr,
                                                   expected.mutable_data());
    const Array y = product(PackedMatrix(weight, DecodeWeights::float32, memory), x, bias, activation.value);
    CHECK_MESSAGE(relative_error(y, expected) <= fused_tolerance, activation.name);
  }
}

TEST_CASE("bf16 rounds to nearest, ties to even; what is not a number stays so, in 8 bits, too") {
  const real ulp = std::ldexp(real{1}, -7);  // of bf16 numbers from 1 to 2
  CHECK(through_storage(1) == 1);
  CHECK(through_storage(1 + ulp / 2) == 1);
  CHECK(through_storage(1 + ulp * real(0.51)) == 1 + ulp);
  CHECK(through_storage(1 + ulp * real(1.5)) == 1 + 2 * ulp);
  CHECK(through_storage(-(1 + ulp * real(0.49))) == -1);
  CHECK(through_storage(2 - ulp / 4) == 2);
  const real infinity = std::numeric_limits<real>::infinity();
  CHECK(through_storage(infinity) == infinity);
  CHECK(through_storage(-infinity) == -infinity);
  CHECK(std::isnan(through_storage(std::numeric_limits<real>::quiet_NaN())));
  CHECK(std::isnan(through_storage(infinity, DecodeWeights::int8)));
  CHECK(std::isnan(through_storage(std::numeric_limits<real>::quiet_NaN(), DecodeWeights::int8)));
  CHECK(through_storage(real(0.3), DecodeWeights::int8) == doctest::Approx(0.3));
  CHECK(through_storage(0, DecodeWeights::int8) == 0);
}

TEST_CASE("a packed matrix is a copy, and a vector is none") {
  Array weight = Array::zeros(Shape{2, 2});
  PackedMemory memory;
  const PackedMatrix matrix(weight, DecodeWeights::float32, memory);
  weight.shared_data()[0] = 5;
  CHECK(product(matrix, Array(Shape{1, 2}, real{1}), Array(), Activation::none)[0] == 0);
  CHECK_THROWS_AS(PackedMatrix(Array::zeros(Shape{4}), DecodeWeights::float32, memory), std::invalid_argument);
}

TEST_CASE("places of packed memory are aligned and apart, also past the end of a block, and outlive it") {
  std::vector<PackedMemory::Place> places;
  const size_t sizes[] = {1, 64, 100, size_t{9} << 20, size_t{9} << 20, size_t{40} << 20, 7};
  {
    PackedMemory memory;
    for (const size_t size : sizes) places.push_back(memory.take(size));
  }
  for (size_t i = 0; i < places.size(); ++i) std::memset(places[i].data(), static_cast<int>(i), sizes[i]);
  for (size_t i = 0; i < places.size(); ++i) {
    const auto* const bytes = static_cast<const char*>(places[i].data());
    CHECK(reinterpret_cast<uintptr_t>(bytes) % 64 == 0);
    CHECK(std::all_of(bytes, bytes + sizes[i], [&](char byte) { return byte == static_cast<char>(i); }));
  }
}

TEST_CASE("a row times a matrix agrees with two loops") {
  for (const int64_t in : {1, 7, 128}) {
    for (const int64_t columns : {1, 15, 64, 150}) {
      const int64_t stride = columns + 3;
      const Array x = normal_array({in}, 1), matrix = normal_array({in, stride}, 2),
                  before = normal_array({columns}, 3);
      Array y = before.clone(), expected(Shape{columns});
      CAPSTAN_PRECISION::kernels::row_times_matrix(x.data(), in, matrix.data(), stride, columns, real(0.25),
                                                   y.mutable_data());
      for (int64_t c = 0; c < columns; ++c) {
        double sum = 0;
        for (int64_t k = 0; k < in; ++k) sum += static_cast<double>(x[k]) * static_cast<double>(matrix[k * stride + c]);
        expected.mutable_data()[c] = static_cast<real>(static_cast<double>(before[c]) + 0.25 * sum);
      }
      CHECK_MESSAGE(relative_error(y, expected, 0.1) <= fused_tolerance, in, " x ", columns);
    }
  }
}

TEST_CASE("packing reads the weight and nothing after it: what fills the last panel is zero") {
  const real unread = std::numeric_limits<real>::quiet_NaN();
  for (const int64_t out : {1, 15, 16, 17, 31, 32, 33})
    for (const int64_t in : {1, 2, 7}) {
      INFO(out, " outputs, ", in, " inputs");
      std::vector<real> weight(static_cast<size_t>(out * in), real{1});
      weight.resize(weight.size() + static_cast<size_t>(in * kernels::gemv_panel<real>), unread);
      const int64_t panels = kernels::gemv_panels<real>(out), panel = kernels::gemv_panel<real>;
      std::vector<real> packed(static_cast<size_t>(panels * panel * in), unread);
      std::vector<kernels::Bf16Pair> pairs(packed.size() / 2, {0xffffffff});
      kernels::gemv_pack(weight.data(), out, in, 0, panels, packed.data());
      kernels::gemv_pack(weight.data(), out, in, 0, panels, pairs.data());
      const auto at = [&](int64_t output, int64_t k) {
        return static_cast<size_t>(((output / panel) * in + k) * panel + output % panel);
      };
      for (int64_t output = 0; output < panels * panel; ++output)
        for (int64_t k = 0; k < in; ++k) {
          CHECK(packed[at(output, k)] == (output < out ? 1 : 0));
          const int64_t lane = output % panel;
          const uint32_t bits =
              pairs[(at(output, k) - static_cast<size_t>(lane)) / 2 + static_cast<size_t>(lane % (panel / 2))].bits;
          CHECK((lane < panel / 2 ? bits & 0xffff : bits >> 16) == (output < out ? 0x3f80u : 0u));  // 1 in bf16
        }
    }
}
