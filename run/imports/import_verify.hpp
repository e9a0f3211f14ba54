// An imported module or model against outputs of the published one.
#pragma once

#include <string>

#include "models/model.hpp"
#include "run/imports/imported_module.hpp"

namespace capstan {

/// Sets the parameters whose names are `prefix` and that of a tensor. Throws Error for another shape, and for values
/// that are not finite.
void fill(ParamStore& params, const ImportedTensors& tensors, const std::string& prefix = "");

/// Throws Error unless what the module makes of tensor `x` of a safetensors file is its tensor `y`, or what the model
/// makes of `tokens` is `logits`, to 1e-5 of the largest element. x and y: (B, T, D) or, for modules that have time
/// first, (T, B, D). `tokens` and, if it is there, `segment_ids`: (B, T). Returns a line that says how well they are
/// met.
std::string verify_import(const ImportedModule& module, const std::string& file, bool causal);
std::string verify_import(const Model& model, const std::string& file);

}  // namespace capstan
