// finalize() gives every parameter its offset in four passes (decayed, other dense ones, tables by rows, frozen), each
// in the order in which parameters were made, copies the initial values there and makes all Vars views of the block.
#include "nn/params/param_store.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "core/base/error.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/base/sizes.hpp"
#include "core/base/stop.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/machine/pool.hpp"
#include "core/strings/nearest.hpp"
#include "core/strings/strings.hpp"

namespace capstan::CAPSTAN_PRECISION {

bool is_matrix(const Param& param) {
  return param.options.decay && !param.options.by_rows && !param.options.table && param.var.rank() == 2 &&
         param.var.dim(0) > 1 && param.var.dim(1) > 1;
}

Var ParamStore::add(const std::string& name, Array initial, const ParamOptions& options) {
  if (finalized_) throw std::logic_error("params: " + name + " was made after finalize()");
  if (places_.count(name) > 0) throw std::logic_error("params: there are two parameters called " + name);
  check(!options.by_rows || initial.rank() == 2, "params: {} of shape {} has no rows", name, initial.shape());
  const int64_t rows = std::accumulate(options.stacked.begin(), options.stacked.end(), int64_t{0});
  check(options.stacked.empty() || (initial.rank() == 2 && initial.shape()[0] == rows),
        "params: {} of shape {} does not stack matrices of {} rows in all", name, initial.shape(), rows);
  places_[name] = params_.size();
  const bool frozen = options.constant || is_frozen(rules_, name);
  Param param{name, frozen ? Var(std::move(initial)) : Var::leaf(std::move(initial)), options};
  param.frozen = frozen;
  params_.push_back(std::move(param));
  return params_.back().var;
}

void ParamStore::alias(const std::string& name, const std::string& target) {
  find(target);
  aliases_.emplace_back(name, target);
}

void ParamStore::finalize() {
  if (finalized_) throw std::logic_error("params: finalize() was called twice");
  constexpr int64_t granule = 64 / sizeof(real);
  int64_t size = 0;
  const auto place = [&](const auto& chosen) {
    for (Param& param : params_) {
      if (!chosen(param) || param.offset < 0) continue;
      param.offset = size;
      size = round_up(checked_sum("the parameters of the model", {size, param.var.size()}), granule);
    }
    return size;
  };
  for (Param& param : params_) param.offset = memory_ == ParamMemory::values && param.options.packs ? -1 : 0;
  const auto dense = [](const Param& param) { return !param.frozen && !param.options.by_rows; };
  decay_size_ = place([&](const Param& param) { return dense(param) && param.options.decay; });
  dense_size_ = place([&](const Param& param) { return dense(param) && !param.options.decay; });
  trainable_size_ = place([](const Param& param) { return !param.frozen && param.options.by_rows; });
  place([](const Param& param) { return param.frozen; });
  size_t tables = 0;
  int64_t blocks = 0;
  for (Param& param : params_) {
    if (param.options.by_rows && !param.frozen) param.table = static_cast<int64_t>(tables++);
    blocks = std::max(blocks, block_of(param.name) + 1);
  }
  for (Param& param : params_) param.lr_factor = lr_factor(rules_, param.name, blocks);
  finalized_ = true;
  if (!has_memory()) {
    values_ = Array::shape_only(Shape{size});
    return;
  }
  const MemoryFor purpose("the model's parameters and their gradients");
  values_ = Array(Shape{size});
  constexpr int64_t piece = int64_t{1} << 22;  // elements copied between two checks for Ctrl-C (stop_point)
  for (const Param& param : params_) {
    if (param.offset < 0) continue;
    real* const to = values_.shared_data() + param.offset;
    const int64_t count = param.var.size();
    for (int64_t begin = 0; begin < count && has_initial_values(); begin += piece) {
      stop_point();
      kernels::copy(to + begin, param.var.value().data() + begin, std::min(piece, count - begin));
    }
    kernels::fill(to + count, round_up(count, granule) - count, real{0});
    param.var.assign(values_.view(param.offset, param.var.shape()));
    pool::trim();  // frees the initial value: keeping those of all parameters doubles the memory
  }
  if (!has_initial_values()) return;
  grads_ = GradBlock(dense_size_, tables);
  for (const Param& param : params_)
    if (!param.frozen) param.var.bind(param.var.value(), grads_, param.offset, param.table);
}

const Param* ParamStore::known(const std::string& name) const {
  const auto place = places_.find(name);
  return place != places_.end() ? &params_[place->second] : nullptr;
}

const Param& ParamStore::find(const std::string& name) const {
  if (const Param* const param = known(name)) return *param;
  std::vector<std::string> names;
  for (const Param& param : params_) names.push_back(param.name);
  const std::string meant = nearest(name, names);
  throw Error(
      fmt::format("params: there is no parameter {}{}", name, meant.empty() ? "" : "; the nearest is " + meant));
}

int64_t ParamStore::count() const {
  int64_t count = 0;
  for (const Param& param : params_) count += param.var.size();
  return count;
}

}  // namespace capstan::CAPSTAN_PRECISION
