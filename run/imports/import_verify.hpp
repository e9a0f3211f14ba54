// An imported module against outputs of the published one.
#pragma once

#include <string>

#include "run/imports/imported_module.hpp"

namespace capstan {

/// Largest difference between tensor `y` of a safetensors file and what the imported module makes of its tensor `x`, as
/// a share of the largest element of y. x and y: (B, T, D) or, for modules that have time first, (T, B, D). Throws Error
/// naming the file when they do not fit the module.
double verify_import(const ImportedModule& module, const std::string& file, bool causal);

}  // namespace capstan
