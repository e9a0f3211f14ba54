// Arrays and xtensor: an Array shows itself as an xtensor view, and any xtensor expression makes an Array.
//
//   const auto k = as_xtensor<2>(keys);                           // (T, D), no copy
//   Array weights = make_array(xt::exp(k - xt::amax(k)()));       // evaluates
//
// For the element-wise ops (core/array/rows_xt.hpp) and for tests that compute with xtensor. Heavy: include it in
// source files only. Never keep `auto x = a + b` past its statement (the operands dangle); xt::sum and its kind
// recompute their operand for every element read: pass xt::evaluation_strategy::immediate, or evaluate into an
// xt::xtensor first. One thread; element-wise ops in parallel are in core/array/rows_xt.hpp.
#pragma once

#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xbuilder.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>

#include "core/array/array.hpp"
#include "core/base/error.hpp"

namespace capstan {

/// Extents of `shape` for a container of fixed rank. Throws std::invalid_argument when the rank differs: xtensor would
/// write past the end instead.
template <size_t Rank>
std::array<size_t, Rank> fixed_extents(const Shape& shape) {
  check(shape.rank() == static_cast<int>(Rank), "xtensor: shape {} does not have rank {}", shape, Rank);
  std::array<size_t, Rank> extents{};
  for (size_t axis = 0; axis < Rank; ++axis) extents[axis] = static_cast<size_t>(shape[static_cast<int>(axis)]);
  return extents;
}

/// A read-only view of an Array, of dynamic rank.
template <class T>
auto as_xtensor(const ArrayOf<T>& array) {
  const auto extents = array.shape().to_vector();
  return xt::adapt(array.data(), static_cast<size_t>(array.size()), xt::no_ownership(),
                   std::vector<size_t>(extents.begin(), extents.end()));
}

/// A read-only view of fixed rank: cheaper to make, to compile and to loop over. Throws std::invalid_argument for an
/// Array of another rank.
template <size_t Rank, class T>
auto as_xtensor(const ArrayOf<T>& array) {
  return xt::adapt(array.data(), static_cast<size_t>(array.size()), xt::no_ownership(),
                   fixed_extents<Rank>(array.shape()));
}

/// `count` contiguous elements as an xtensor of rank 1; writable where `data` is.
template <class T>
auto as_row(T* data, int64_t count) {
  const auto extent = static_cast<size_t>(count);
  return xt::adapt(data, extent, xt::no_ownership(), std::array<size_t, 1>{extent});
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// An Array from any xtensor expression or container; elements become `real` (true and false: 1 and 0).
template <class E>
Array make_array(const xt::xexpression<E>& expression) {
  const E& e = expression.derived_cast();
  const std::vector<int64_t> extents(e.shape().begin(), e.shape().end());
  Array array{Shape(extents)};
  auto target = xt::adapt(array.mutable_data(), static_cast<size_t>(array.size()), xt::no_ownership(),
                          std::vector<size_t>(extents.begin(), extents.end()));
  xt::noalias(target) = e;
  return array;
}

}  // namespace capstan::CAPSTAN_PRECISION
