#include "nn/scope.hpp"

#include "core/error.hpp"

CAPSTAN_BEGIN

Scope Scope::operator/(const std::string& part) const {
  Scope inner = *this;
  inner.path_ = path_.empty() ? part : path_ + "." + part;
  return inner;
}

Var Scope::param(const std::string& name, const Shape& shape, const Init& init, const ParamOptions& options) const {
  const std::string full_name = (*this / name).path_;
  RandomStream random(capstan::random_key(seed_, full_name));
  Array initial = init(shape, random);
  check(initial.shape() == shape, "params: the initial value of {} has shape {} instead of {}", full_name,
        initial.shape(), shape);
  return store_->add(full_name, std::move(initial), options);
}

CAPSTAN_END
