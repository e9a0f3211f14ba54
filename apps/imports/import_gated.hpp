// GAU and FLASH of FLASH-pytorch (apps/imports/import_module.hpp).
#pragma once

#include "apps/imports/import_tensors.hpp"
#include "apps/imports/imported_module.hpp"

namespace capstan {

ImportedModule import_gau(Import& import, const ImportHints& hints);
ImportedModule import_flash(Import& import, const ImportHints& hints);

}  // namespace capstan
