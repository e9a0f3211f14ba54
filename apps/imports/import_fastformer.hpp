// Fastformer's module, alone or with the projection after it (apps/imports/import_module.hpp).
#pragma once

#include "apps/imports/import_tensors.hpp"
#include "apps/imports/imported_module.hpp"

namespace capstan {

ImportedModule import_fastformer(Import& import);

}  // namespace capstan
