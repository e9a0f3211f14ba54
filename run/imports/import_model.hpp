// Weights of published PyTorch models as a whole Capstan model.
#pragma once

#include <string>

#include "core/io/safetensors.hpp"
#include "run/imports/imported_module.hpp"

namespace capstan {

/// Recognises, by their parameter names after `prefix`,
/// - FLASHTransformer (FLASH-pytorch): token_emb, abs_pos_emb, layers, to_logits: a language model with hints.causal, else a
///   masked one;
/// - the classifier of Fastformer's notebook: word_embedding, fastformer_model, dense_linear;
/// - GAU-alpha (JunnYu's port), with cls: a masked language model;
/// - TransformerModel of PyTorch's tutorials and examples: embedding, encoder or input_emb, transformer_encoder or encoder,
///   pos_encoder, linear or decoder: a language model with hints.causal, else a masked one.
///
/// A masked model needs hints.mask_token: its row of the embedding becomes that of Capstan's mask token. Output layers are
/// never tied, so that they have the file's numbers. Throws Error as import_module().
ImportedModel import_model(const SafetensorsFile& file, const std::string& prefix, const ImportHints& hints);

}  // namespace capstan
