// Weights of published PyTorch modules as a Capstan mixer.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/io/safetensors.hpp"
#include "nn/blocks/block.hpp"

namespace capstan {

/// A mixer that computes what the imported module computes, and its parameters under their names here.
struct ImportedModule {
  std::string source;  // which module the file holds
  MixerConfig mixer;
  int64_t width = 0, max_length = 0;  // max_length 0: any number of tokens
  struct Tensor {
    std::vector<int64_t> shape;
    std::vector<float> values;
  };
  std::map<std::string, Tensor> parameters;
  std::map<std::string, Tensor> norm;  // gain and bias of a norm before the mixer: the block's mixer_norm
};

/// What a file does not say about its module; 0 or false: not given.
struct ImportHints {
  int64_t window = 0;    // AFTLocal
  int64_t length = 0;    // GAU: tokens of the texts it is used on
  int64_t chunk = 0;     // FLASH: its group_size
  bool laplace = false;  // GAU and FLASH: the kernel, instead of relu^2
};

/// Recognises, by their parameter names behind `prefix`,
///   AFT_FULL  fc_q, fc_k, fc_v (.weight, .bias), position_biases (n, n): aft-full, dense, no output projection;
///   AFTLocal  query, key, value, output (.weight, .bias), pos_bias (n, n), local_mask: aft-local, dense;
///   FastSelfAttention  query, query_att, key, key_att, transform: fastformer without output projection, or
///   FastAttention, the same behind `self.` and output.dense: with it; output.LayerNorm is the block's and left out;
///   GAU (FLASH-pytorch)  to_hidden.0, to_qk.0, offsetscale, to_out.0, rel_pos_bias: gau with n = hints.length (the
///   port's n is the length of each text, padding included);
///   FLASH (FLASH-pytorch)  the same with qk_offset_scale and rotary_pos_emb: flash with chunks of hints.chunk, equal
///   to the bidirectional module on multiples of the chunk. The causal one lets its global part grow with the number of
///   chunks, which no mixer here does; nor does one shift tokens. Both are pre-norm blocks without feed-forward
///   network.
/// The window of AFTLocal is read from local_mask, or given. A tensor that belongs to none is an error, as is a shape
/// that does not fit. Throws Error naming file and tensor.
ImportedModule import_module(const SafetensorsFile& file, const std::string& prefix, const ImportHints& hints);

}  // namespace capstan
