// Fastformer's module, alone, with the projection and norm after it, or as a layer (run/imports/import_module.hpp).
#pragma once

#include "run/imports/import_tensors.hpp"
#include "run/imports/imported_module.hpp"

namespace capstan {

/// Of BERT's configurations, which the notebook uses.
constexpr double bert_norm_eps = 1e-12;

ImportedModule import_fastformer(Import& import, const ImportHints& hints);
ImportedModule import_fastformer_layer(Import& import, const ImportHints& hints);
/// Fastformer's classifier.
ImportedModel import_fastformer_model(Import& import, const ImportHints& hints);

}  // namespace capstan
