// What decode steps share: weights packed once for products of few rows, and the last tables of rotary angles.
// tests/models/test_decode.cpp checks that logits do not depend on the other texts of a batch.
#include "nn/layers/context.hpp"

#include <algorithm>

#include "core/fused/linear_products.hpp"
#include "core/fused/rotary_tables.hpp"

namespace capstan::CAPSTAN_PRECISION {

Array DecodeContext::linear(const Array& x, const Var& weight, const Var& bias, Activation activation) {
  const LinearSizes sizes = linear_sizes(x.shape(), weight.shape(), bias, "decode");
  const Array& values = weight.value();
  auto packed = packed_.find(values.data());  // by the address of the weight, which Packed keeps alive
  if (packed == packed_.end())
    packed = packed_.emplace(values.data(), Packed{values, PackedMatrix(values, storage_, memory_)}).first;
  Array y(x.shape().with(-1, sizes.out));
  packed->second.matrix.multiply(x.data(), sizes.rows, bias ? bias.value().data() : nullptr, activation,
                                 y.mutable_data());
  return y;
}

const RotaryTables& DecodeContext::rotary(const Ids& positions, int64_t pairs, double base) {
  const bool known = angles_.pairs == pairs && angles_.base == base &&
                     std::equal(angles_.positions.begin(), angles_.positions.end(), positions.data(),
                                positions.data() + positions.size());
  if (!known) angles_ = {positions.to_vector(), pairs, base, rotary_tables(positions, pairs, base)};
  return angles_.tables;
}

}  // namespace capstan::CAPSTAN_PRECISION
