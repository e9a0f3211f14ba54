// What the importers of whole models share.
#pragma once

#include "run/imports/import_tensors.hpp"
#include "run/imports/imported_module.hpp"

namespace capstan {

/// `name` under `to`, whole.
inline const ImportedTensor& take_tensor(Import& import, const std::string& name, const std::string& to,
                                         const std::vector<int64_t>& shape, ImportedTensors& tensors) {
  const FileTensor& tensor = import.take(name, shape);
  return tensors[to] = {tensor.shape, tensor.to_floats()};
}

/// NAME.weight and NAME.bias of a LayerNorm as TO.gain and TO.bias.
inline void take_layer_norm(Import& import, const std::string& name, const std::string& to, int64_t width,
                            ImportedTensors& tensors) {
  take_tensor(import, name + ".weight", to + ".gain", {width}, tensors);
  take_tensor(import, name + ".bias", to + ".bias", {width}, tensors);
}

/// Adds a block after those that are there.
void add_block(const ImportedModule& block, ModelConfig& config, ImportedTensors& tensors);

/// Language model or masked one, as the hints say, with an output of its own. Of a masked model the embedding gets a row
/// for the mask token. Throws Error without hints.mask_token where it is needed.
void finish_token_model(const ModelConfig& stack, bool causal, bool output_bias, const ImportHints& hints,
                        ImportedModel& model);

}  // namespace capstan
