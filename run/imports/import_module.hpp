// Weights of published PyTorch modules and models, as a Capstan mixer and as a whole model. import_run.cpp calls it for
// `capstan import`. tests/apps/test_import*.cpp compare outputs with those of PyTorch, and tests/fuzz/fuzz_import*.cpp
// hold that no file does harm.
#pragma once

#include <string>

#include "core/io/safetensors.hpp"
#include "models/model.hpp"
#include "run/imports/imported_module.hpp"

namespace capstan {

/// Recognises, by their parameter names after `prefix`,
/// - AFT_FULL: fc_q, fc_k, fc_v (.weight, .bias), position_biases (n, n): aft-full, dense, no output projection;
/// - AFTLocal: query, key, value, output (.weight, .bias), pos_bias (n, n), local_mask: aft-local, dense;
/// - FastSelfAttention: query, query_att, key, key_att, transform: fastformer without output projection;
/// - FastAttention: the same after "self.", and output.dense: fastformer with output projection; with output.LayerNorm,
///   a post-norm block without feed-forward network;
/// - FastformerLayer: the same after "attention.", intermediate and output: a post-norm block;
/// - GAU (FLASH-pytorch): to_hidden.0, to_qk.0, offsetscale, to_out.0, rel_pos_bias: gau with n = hints.length (the
///   port's n is the length of each text, padding included);
/// - FLASH (FLASH-pytorch): the same with qk_offset_scale and rotary_pos_emb: flash with chunks of hints.chunk and
///   normaliser chunk, causal or not. Both are pre-norm blocks without feed-forward network;
/// - AFTFull, AFTLocal and AFTSimple of aft-pytorch: to_q, to_k, to_v, project (.weight, .bias), wbias (n, n):
///   aft-full or, with hints.window, aft-local, or aft-simple, with an inner width;
/// - MultiheadAttention (torch.nn): in_proj_weight, in_proj_bias, out_proj: attention of hints.heads heads;
/// - TransformerEncoderLayer (torch.nn): self_attn, linear1, linear2, norm1, norm2: a block.
///
/// AFT_FULL without position_biases (simple=True) is aft-simple. The window of AFTLocal is read from local_mask, or
/// given. A tensor that belongs to none is an error, as is a shape that does not fit. Throws Error naming file and
/// tensor.
ImportedModule import_module(const SafetensorsFile& file, const std::string& prefix, const ImportHints& hints);

/// Recognises, by their parameter names after `prefix`,
/// - FLASHTransformer (FLASH-pytorch): token_emb, abs_pos_emb, layers, to_logits: a language model with hints.causal,
///   else a masked one;
/// - the classifier of Fastformer's notebook: word_embedding, fastformer_model, dense_linear;
/// - GAU-alpha (JunnYu's port), with cls: a masked language model;
/// - TransformerModel of PyTorch's tutorials and examples: embedding, encoder or input_emb, transformer_encoder or
///   encoder, pos_encoder, linear or decoder: a language model with hints.causal, else a masked one.
///
/// A masked model needs hints.mask_token: its row of the embedding becomes that of Capstan's mask token. Output layers
/// are never tied, so that they have the file's numbers. Throws Error as import_module().
ImportedModel import_model(const SafetensorsFile& file, const std::string& prefix, const ImportHints& hints);

// An imported module or model against outputs of the published one.

/// Sets the parameters whose names are `prefix` and that of a tensor. Throws Error for another shape, and for values
/// that are not finite.
void fill(ParamStore& params, const ImportedTensors& tensors, const std::string& prefix = "");

/// Throws Error unless what the module makes of tensor `x` of a safetensors file is its tensor `y`, or what the model
/// makes of `tokens` is `logits`, to 1e-5 of the largest element. x and y: (B, T, D) or, for modules that have time
/// first, (T, B, D). `tokens` and, if it is there, `segment_ids`: (B, T). Returns a line that says how well they are
/// met.
std::string verify_import(const ImportedModule& module, const std::string& file, bool causal);
std::string verify_import(const Model& model, const std::string& file);

}  // namespace capstan
