// The AFT modules of public PyTorch code (apps/imports/import_module.hpp says which).
#pragma once

#include "apps/imports/import_tensors.hpp"
#include "apps/imports/imported_module.hpp"

namespace capstan {

ImportedModule import_aft_full(Import& import);
/// `window` 0: read from the file. Throws Error where it is in neither or the two differ.
ImportedModule import_aft_local(Import& import, int64_t window);

}  // namespace capstan
