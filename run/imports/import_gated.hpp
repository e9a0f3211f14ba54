// GAU and FLASH of FLASH-pytorch (run/imports/import_module.hpp).
#pragma once

#include "run/imports/import_tensors.hpp"
#include "run/imports/imported_module.hpp"

namespace capstan {

ImportedModule import_gau(Import& import, const ImportHints& hints);
ImportedModule import_flash(Import& import, const ImportHints& hints);

}  // namespace capstan
