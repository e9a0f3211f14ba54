// The files of tests/parity/fixtures (see tests/parity/README.md).
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/io/safetensors.hpp"
#include "nn/params/param_store.hpp"
#include "tests/support/source_dir.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

/// Largest difference from PyTorch, relative to the tensor's largest entry.
constexpr double parity_tolerance = sizeof(real) == 4 ? 1e-4 : 1e-8;

class Fixture {
 public:
  explicit Fixture(const std::string& name) : file_(source_path("tests/parity/fixtures/" + name + ".safetensors")) {}

  bool has(const std::string& name) const { return file_.find(name) != nullptr; }
  Array array(const std::string& name) const {
    const FileTensor& tensor = file_.at(name);
    Array out{Shape(tensor.shape)};
    tensor.copy_to(out.mutable_data());
    return out;
  }
  Ids ids(const std::string& name) const {
    const FileTensor& tensor = file_.at(name);
    const std::vector<double> values = tensor.to_doubles();
    return Ids(Shape(tensor.shape), std::vector<int32_t>(values.begin(), values.end()));
  }
  /// Entry `index` of the first axis.
  Ids ids(const std::string& name, int64_t index) const {
    const Ids all = ids(name);
    return all.rows(index, index + 1).reshape(all.shape().without(0));
  }
  /// Of the metadata.
  const std::string& text(const std::string& key) const { return file_.metadata().at(key); }
  int64_t number(const std::string& key) const { return std::stoll(text(key)); }
  bool flag(const std::string& key) const { return text(key) == "true"; }

  size_t parameters() const {
    size_t count = 0;
    for (const FileTensor& tensor : file_.tensors()) count += tensor.name.rfind("parameter.", 0) == 0 ? 1 : 0;
    return count;
  }
  /// Every parameter of the store, which must be those of the file.
  void load(ParamStore& store) const {
    CHECK(store.params().size() == parameters());
    for (const Param& param : store.params()) param.var.assign(array("parameter." + param.name));
  }

 private:
  SafetensorsFile file_;
};

}  // namespace capstan::CAPSTAN_PRECISION::testing
