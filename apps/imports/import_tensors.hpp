// The tensors of a published module, taken one by one: for the importers of apps/imports only.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/array/shape.hpp"
#include "core/base/error.hpp"
#include "core/io/safetensors.hpp"
#include "core/text/affixes.hpp"

namespace capstan {

/// Takes tensors from a file by name and checks that none is left over.
class Import {
 public:
  Import(const SafetensorsFile& file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}

  bool has(const std::string& name) const { return file_.find(prefix_ + name) != nullptr; }

  /// The tensor; throws Error unless it has this shape (-1: any extent but 0).
  const FileTensor& take(const std::string& name, const std::vector<int64_t>& shape) {
    const FileTensor& tensor = file_.at(prefix_ + name);
    bool fits = tensor.shape.size() == shape.size();
    for (size_t axis = 0; fits && axis < shape.size(); ++axis)
      fits = shape[axis] == -1 ? tensor.shape[axis] > 0 : shape[axis] == tensor.shape[axis];
    if (!fits)
      throw Error(fmt::format("{}: {} has shape {}, which does not fit the other tensors of the module", file_.path(),
                              tensor.name, to_string(Shape(tensor.shape))));
    taken_.insert(tensor.name);
    return tensor;
  }

  void check_nothing_left() const {
    for (const FileTensor& tensor : file_.tensors())
      if (starts_with(tensor.name, prefix_) && taken_.count(tensor.name) == 0)
        throw Error(fmt::format("{}: {} does not belong to the module; choose the module's own tensors with --prefix",
                                file_.path(), tensor.name));
  }

 private:
  const SafetensorsFile& file_;
  std::string prefix_;
  std::set<std::string> taken_;
};

}  // namespace capstan
