// The tensors of a published module, taken one by one: for the importers of run/imports only.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/array/shape.hpp"
#include "core/base/error.hpp"
#include "core/io/safetensors.hpp"
#include "core/strings/affixes.hpp"

namespace capstan {

/// Takes tensors from a file by name and checks that none is left over.
class Import {
 public:
  /// `approximate`: accept what cannot be met exactly.
  Import(const SafetensorsFile& file, std::string prefix, bool approximate = false)
      : file_(file), prefix_(std::move(prefix)), record_(std::make_shared<Record>()) {
    record_->approximate = approximate;
  }

  /// The same import, for names that begin with `part`.
  Import below(const std::string& part) const {
    Import inner = *this;
    inner.prefix_ += part;
    return inner;
  }

  bool has(const std::string& name) const { return file_.find(prefix_ + name) != nullptr; }
  /// Layers: how many of LIST.0.NAME, LIST.1.NAME, ... there are.
  int64_t count(const std::string& list, const std::string& name) const {
    int64_t found = 0;
    while (has(fmt::format("{}.{}.{}", list, found, name))) ++found;
    return found;
  }

  /// Extents of a tensor that is there; throws Error otherwise.
  const std::vector<int64_t>& shape(const std::string& name) const { return file_.at(prefix_ + name).shape; }

  /// The tensor; throws Error unless it has this shape (-1: any extent but 0).
  const FileTensor& take(const std::string& name, const std::vector<int64_t>& shape) {
    const FileTensor& tensor = file_.at(prefix_ + name);
    bool fits = tensor.shape.size() == shape.size();
    for (size_t axis = 0; fits && axis < shape.size(); ++axis)
      fits = shape[axis] == -1 ? tensor.shape[axis] > 0 : shape[axis] == tensor.shape[axis];
    if (!fits)
      throw Error(fmt::format("{}: {} has shape {}, which does not fit the other tensors of the module", file_.path(),
                              tensor.name, to_string(Shape(tensor.shape))));
    record_->taken.insert(tensor.name);
    return tensor;
  }

  /// Records what Capstan computes otherwise, and how large the effect is. Throws Error unless approximations are accepted.
  void approximate(const std::string& difference) {
    if (!record_->approximate) throw Error(fmt::format("{}: {}; --approximate accepts this", file_.path(), difference));
    record_->approximations.push_back(difference);
  }
  const std::vector<std::string>& approximations() const { return record_->approximations; }

  void check_nothing_left() const {
    for (const FileTensor& tensor : file_.tensors())
      if (starts_with(tensor.name, prefix_) && record_->taken.count(tensor.name) == 0)
        throw Error(fmt::format("{}: {} does not belong to the module; choose the module's own tensors with --prefix",
                                file_.path(), tensor.name));
  }

 private:
  struct Record {
    bool approximate = false;
    std::set<std::string> taken;
    std::vector<std::string> approximations;
  };

  const SafetensorsFile& file_;
  std::string prefix_;
  std::shared_ptr<Record> record_;
};

/// The largest difference of an element from what it should be, by its index; infinite where an element is not finite.
template <class Wanted>
double largest_difference(const std::vector<double>& found, const Wanted& wanted) {
  double largest = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    if (!std::isfinite(found[i])) return INFINITY;
    largest = std::max(largest, std::abs(found[i] - wanted(static_cast<double>(i))));
  }
  return largest;
}

}  // namespace capstan
