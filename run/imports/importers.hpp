// The importers of all systems. A new one is a declaration here and an entry in import_module.cpp.
#pragma once

#include <vector>

#include "run/imports/import_tensors.hpp"

namespace capstan {

/// The importer of one published module or model.
template <class Imported>
struct Importer {
  const char* names;  // of the module and, in brackets, of its parameters: for an error message
  bool (*recognises)(const Import& import);
  Imported (*import)(Import& import, const ImportHints& hints);
};

struct Importers {
  std::vector<Importer<ImportedModule>> modules;
  std::vector<Importer<ImportedModel>> models;
};

Importers aft_importers();
Importers fastformer_importers();
Importers gau_importers();
Importers flash_importers();
Importers attention_importers();

}  // namespace capstan
