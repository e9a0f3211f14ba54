// Where a module gets its parameters from: the only way into a ParamStore. A parameter's initial value is a function of
// the run's seed and its path alone, so adding a module changes no other one's (tests/nn/params/test_params.cpp).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/base/random.hpp"
#include "nn/params/param_store.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Makes an initial value of the given shape; the draws are a pure function of the run's seed and the parameter's path.
using Init = std::function<Array(const Shape& shape, RandomStream& random)>;

namespace init {

/// constant(): every element is `value`. normal(): N(0, stddev^2). uniform(): uniform in [low, high).
Init constant(double value);
inline Init zeros() { return constant(0); }
inline Init ones() { return constant(1); }
Init normal(double stddev);
Init uniform(double low, double high);
/// Normal with stddev gain/sqrt(in), for a weight of shape (out, in). Throws std::invalid_argument for other shapes.
/// LeCun et al. 1998.
Init lecun_normal(double gain = 1);

}  // namespace init

/// A path in a ParamStore and the seed of the initialisers: `scope / "mixer"` is the scope of a part.
class Scope {
 public:
  Scope(ParamStore& store, uint64_t seed) : store_(&store), seed_(seed) {}
  Scope operator/(const std::string& part) const;
  Scope operator/(int64_t index) const { return *this / std::to_string(index); }
  const std::string& path() const { return path_; }

  /// Makes the parameter `<path>.<name>`.
  Var param(const std::string& name, const Shape& shape, const Init& init, const ParamOptions& options = {}) const;
  /// The key of the random numbers drawn at this path (dropout).
  RandomKey random_key() const { return capstan::random_key(seed_, path_); }
  ParamStore& store() const { return *store_; }

 private:
  ParamStore* store_;
  uint64_t seed_;
  std::string path_;
};

}  // namespace capstan::CAPSTAN_PRECISION
