// A Scope makes parameters under a path. The initial value depends on the seed and the full path alone, so that adding
// a parameter changes no other one: tests/nn/params/test_params.cpp.
#include "nn/params/scope.hpp"

#include "core/base/error.hpp"

namespace capstan::CAPSTAN_PRECISION {

Scope Scope::operator/(const std::string& part) const {
  Scope inner = *this;
  inner.path_ = path_.empty() ? part : path_ + "." + part;
  return inner;
}

Scope Scope::sharing(const Scope& original) const {
  Scope shared = *this;
  shared.shared_from_ = path_;
  shared.shared_to_ = original.path_;
  return shared;
}

Scope Scope::with_weights(double stddev) const {
  Scope drawn = *this;
  drawn.weight_stddev_ = stddev;
  return drawn;
}

Var Scope::param(const std::string& name, const Shape& shape, const Init& init, const ParamOptions& options) const {
  const std::string full_name = (*this / name).path_;
  if (!shared_to_.empty()) {
    const std::string target = shared_to_ + full_name.substr(shared_from_.size());
    const Var shared = store_->find(target).var;
    check(shared.shape() == shape, "params: {} of shape {} cannot be {} of shape {}", full_name, shape, target,
          shared.shape());
    store_->alias(full_name, target);
    return shared;
  }
  // The values come from a file (a checkpoint): drawing them would be wasted time.
  if (!store_->has_initial_values()) return store_->add(full_name, Array::shape_only(shape), options);
  const MemoryFor purpose("the model's parameters");
  RandomStream random(capstan::random_key(seed_, full_name));
  Array initial =
      weight_stddev_ && name == "weight" ? init::normal(*weight_stddev_)(shape, random) : init(shape, random);
  check(initial.shape() == shape, "params: the initial value of {} has shape {} instead of {}", full_name,
        initial.shape(), shape);
  return store_->add(full_name, std::move(initial), options);
}

}  // namespace capstan::CAPSTAN_PRECISION
