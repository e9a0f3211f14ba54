// xtensor on Arrays. Heavy: include it in source files only. Never keep `auto x = a + b` past its statement (the
// operands dangle); xt::sum and friends want xt::evaluation_strategy::immediate.
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

/// A read-only xtensor view of an Array, of dynamic rank.
template <class T>
auto as_xarray(const ArrayOf<T>& array) {
  const auto extents = array.shape().to_vector();
  return xt::adapt(array.data(), static_cast<size_t>(array.size()), xt::no_ownership(),
                   std::vector<size_t>(extents.begin(), extents.end()));
}

/// Extents of `shape` for a container of fixed rank. Throws std::invalid_argument when the rank differs: xtensor would
/// write past the end instead.
template <size_t Rank>
std::array<size_t, Rank> fixed_extents(const Shape& shape) {
  check(shape.rank() == static_cast<int>(Rank), "xtensor: shape {} where rank {} is needed", shape, Rank);
  std::array<size_t, Rank> extents{};
  for (size_t axis = 0; axis < Rank; ++axis) extents[axis] = static_cast<size_t>(shape[static_cast<int>(axis)]);
  return extents;
}

/// A read-only view of fixed rank: cheaper to make and to loop over.
template <size_t Rank, class T>
auto as_xtensor(const ArrayOf<T>& array) {
  return xt::adapt(array.data(), static_cast<size_t>(array.size()), xt::no_ownership(),
                   fixed_extents<Rank>(array.shape()));
}

/// A writable view of fixed rank, for the maker of an Array.
template <size_t Rank, class T>
auto as_mutable_xtensor(ArrayOf<T>& array) {
  return xt::adapt(array.mutable_data(), static_cast<size_t>(array.size()), xt::no_ownership(),
                   fixed_extents<Rank>(array.shape()));
}

/// An Array from any xtensor expression or container.
template <class T, class E>
ArrayOf<T> make_array(const xt::xexpression<E>& expression) {
  const E& e = expression.derived_cast();
  std::vector<int64_t> extents(e.shape().begin(), e.shape().end());
  ArrayOf<T> array{Shape(extents)};
  auto target = xt::adapt(array.mutable_data(), static_cast<size_t>(array.size()), xt::no_ownership(),
                          std::vector<size_t>(extents.begin(), extents.end()));
  xt::noalias(target) = e;
  return array;
}

}  // namespace capstan
