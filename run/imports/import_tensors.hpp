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
#include "core/strings/strings.hpp"
#include "run/imports/imported_module.hpp"

namespace capstan {

/// Takes tensors from a file by name and checks that none is left over.
class Import {
 public:
  /// `approximate`: accept what cannot be met exactly.
  Import(const SafetensorsFile& file, std::string prefix, bool approximate = false)
      : file_(file), prefix_(std::move(prefix)), record_(std::make_shared<Record>()) {
    record_->approximate = approximate;
  }

  /// This import for names that begin with `part`.
  Import below(const std::string& part) const {
    Import inner = *this;
    inner.prefix_ += part;
    return inner;
  }

  bool has(const std::string& name) const { return file_.find(prefix_ + name) != nullptr; }
  /// How many of the layers LIST.0.NAME, LIST.1.NAME, ... there are.
  int64_t count(const std::string& list, const std::string& name) const {
    int64_t layers = 0;
    while (has(fmt::format("{}.{}.{}", list, layers, name))) ++layers;
    return layers;
  }

  /// Extents of a tensor that is there; throws Error otherwise.
  const std::vector<int64_t>& shape(const std::string& name) const { return file_.at(prefix_ + name).shape; }

  /// The tensor; throws Error unless it has this shape (-1: any extent but 0) and all its elements are finite.
  const FileTensor& take(const std::string& name, const std::vector<int64_t>& shape) {
    const FileTensor& tensor = file_.at(prefix_ + name);
    bool fits = tensor.shape.size() == shape.size();
    for (size_t axis = 0; fits && axis < shape.size(); ++axis)
      fits = shape[axis] == -1 ? tensor.shape[axis] > 0 : shape[axis] == tensor.shape[axis];
    if (!fits)
      throw Error(fmt::format("{}: {} has shape {}, which does not fit the other tensors of the module", file_.path(),
                              tensor.name, to_string(Shape(tensor.shape))));
    if (tensor.stored != nullptr)  // a small file may say that it has any number of rows
      throw Error(
          fmt::format("{}: {} is stored without its rows of zeros, as Capstan's own checkpoints are; those are "
                      "for train.init_from",
                      file_.path(), tensor.name));
    if (record_->taken.insert(tensor.name).second) {
      const std::vector<float> values = tensor.to_floats();
      const auto bad = std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
      if (bad != values.end())
        throw Error(fmt::format("{}: element {} of {} is not finite", file_.path(), bad - values.begin(), tensor.name));
    }
    return tensor;
  }
  /// Takes a tensor and puts it into `tensors` under the name `to`.
  const ImportedTensor& take(const std::string& name, const std::vector<int64_t>& shape, const std::string& to,
                             ImportedTensors& tensors) {
    const FileTensor& tensor = take(name, shape);
    return tensors[to] = {tensor.shape, tensor.to_floats()};
  }

  /// Records what Capstan computes otherwise, and how large the effect is. Throws Error unless approximations are
  /// accepted.
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

/// NAME.weight and, with `bias`, NAME.bias of a Linear layer as TO.weight and TO.bias.
inline void take_linear(Import& import, const std::string& name, const std::string& to, int64_t out, int64_t in,
                        bool bias, ImportedTensors& tensors) {
  import.take(name + ".weight", {out, in}, to + ".weight", tensors);
  if (bias) import.take(name + ".bias", {out}, to + ".bias", tensors);
}

/// NAME.weight and NAME.bias of a LayerNorm as TO.gain and TO.bias.
inline void take_layer_norm(Import& import, const std::string& name, const std::string& to, int64_t width,
                            ImportedTensors& tensors) {
  import.take(name + ".weight", {width}, to + ".gain", tensors);
  import.take(name + ".bias", {width}, to + ".bias", tensors);
}

/// Two Linear layers as the feed-forward network of a block.
inline void take_feed_forward(Import& import, const std::string& up, const std::string& down, bool bias,
                              ImportedModule& module) {
  const int64_t width = module.width, hidden = import.take(up + ".weight", {-1, width}).shape[0];
  take_linear(import, up, "feed_forward.up", hidden, width, bias, module.block);
  take_linear(import, down, "feed_forward.down", width, hidden, bias, module.block);
  module.layer.feed_forward.bias = bias;
  module.layer.feed_forward.expansion = static_cast<double>(hidden) / static_cast<double>(width);
}

/// Adds a block after those that the configuration has.
void add_block(const ImportedModule& block, ModelConfig& config, ImportedTensors& tensors);

/// Language model or masked one, as the hints say, with an output of its own. Of a masked model the embedding gets a
/// row for the mask token. Throws Error without hints.mask_token where it is needed.
void finish_token_model(const ModelConfig& stack, bool causal, bool output_bias, const ImportHints& hints,
                        ImportedModel& model);

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

// The importers of all systems. A new one is a declaration here and an entry in import_module.cpp.

/// The importer of one published module or model.
template <class Imported>
struct Importer {
  const char* names;  // of the module and, in brackets, of its parameters: for an error message
  bool (*recognises)(const Import& import);
  Imported (*import)(Import& import, const ImportHints& hints);
};

struct Importers {
  std::vector<Importer<ImportedModule>> modules;
  std::vector<Importer<ImportedModel>> models;
};

Importers aft_importers();
Importers fastformer_importers();
Importers gau_importers();
Importers flash_importers();
Importers attention_importers();

}  // namespace capstan
