// GAU of FLASH-pytorch and GAU-alpha (run/imports/import_module.hpp).
#pragma once

#include "run/imports/import_tensors.hpp"
#include "run/imports/imported_module.hpp"

namespace capstan {

ImportedModule import_gau(Import& import, const ImportHints& hints);
ImportedModel import_gau_alpha(Import& import, const ImportHints& hints);

}  // namespace capstan
