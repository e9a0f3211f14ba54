// torch.nn.MultiheadAttention and TransformerEncoderLayer (run/imports/import_module.hpp).
#pragma once

#include "run/imports/import_tensors.hpp"
#include "run/imports/imported_module.hpp"

namespace capstan {

/// Throws Error without hints.heads, which no file has.
ImportedModule import_attention(Import& import, const ImportHints& hints);
/// The same without hints.activation.
ImportedModule import_encoder_layer(Import& import, const ImportHints& hints);
/// TransformerModel of PyTorch's tutorials and examples.
ImportedModel import_transformer(Import& import, const ImportHints& hints);
/// Does the module below `import` have an embedding, an encoder and an output by names that TransformerModel uses?
bool is_transformer(const Import& import);

}  // namespace capstan
