// GAU and FLASH of FLASH-pytorch (runs/imports/import_module.hpp).
#pragma once

#include "runs/imports/import_tensors.hpp"
#include "runs/imports/imported_module.hpp"

namespace capstan {

ImportedModule import_gau(Import& import, const ImportHints& hints);
ImportedModule import_flash(Import& import, const ImportHints& hints);

}  // namespace capstan
