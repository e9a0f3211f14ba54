// A Scope makes parameters under a path. The initial value depends on the seed and the full path alone, so that adding
// a parameter changes no other one: tests/nn/params/test_params.cpp.
#include "nn/params/scope.hpp"

#include "core/base/error.hpp"
#include "core/base/out_of_memory.hpp"

namespace capstan::CAPSTAN_PRECISION {

Scope Scope::operator/(const std::string& part) const {
  Scope inner = *this;
  inner.path_ = path_.empty() ? part : path_ + "." + part;
  return inner;
}

Var Scope::param(const std::string& name, const Shape& shape, const Init& init, const ParamOptions& options) const {
  const std::string full_name = (*this / name).path_;
  // The values come from a file (a checkpoint): drawing them would be wasted time.
  if (!store_->has_initial_values()) return store_->add(full_name, Array::shape_only(shape), options);
  const MemoryFor purpose("the model's parameters");
  RandomStream random(capstan::random_key(seed_, full_name));
  Array initial = init(shape, random);
  check(initial.shape() == shape, "params: the initial value of {} has shape {} instead of {}", full_name,
        initial.shape(), shape);
  return store_->add(full_name, std::move(initial), options);
}

}  // namespace capstan::CAPSTAN_PRECISION
