// The AFT modules of public PyTorch code (see run/imports/import_module.hpp).
#pragma once

#include "run/imports/import_tensors.hpp"
#include "run/imports/imported_module.hpp"

namespace capstan {

ImportedModule import_aft_full(Import& import);
/// `window` 0: read it from the file. Throws Error if the file does not have it either, or if the two differ.
ImportedModule import_aft_local(Import& import, int64_t window);
/// `window` 0: wbias as it is, for all distances.
ImportedModule import_aft_projected(Import& import, int64_t window);

}  // namespace capstan
