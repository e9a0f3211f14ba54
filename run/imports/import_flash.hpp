// FLASH of FLASH-pytorch (run/imports/import_module.hpp).
#pragma once

#include "run/imports/import_tensors.hpp"
#include "run/imports/imported_module.hpp"

namespace capstan {

ImportedModule import_flash(Import& import, const ImportHints& hints);
/// FLASHTransformer.
ImportedModel import_flash_model(Import& import, const ImportHints& hints);

}  // namespace capstan
