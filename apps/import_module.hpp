// Weights of published PyTorch modules as a Capstan mixer.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/safetensors.hpp"
#include "nn/block.hpp"

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
};

/// Recognises, by their parameter names behind `prefix`,
///   AFT_FULL  fc_q, fc_k, fc_v (.weight, .bias), position_biases (n, n): aft-full, dense, no output projection;
///   AFTLocal  query, key, value, output (.weight, .bias), pos_bias (n, n), local_mask: aft-local, dense;
///   FastSelfAttention  query, query_att, key, key_att, transform: fastformer without output projection, or
///   FastAttention, the same behind `self.` and output.dense: with it; output.LayerNorm is the block's and left out.
/// The window of AFTLocal is read from local_mask, or given by `window` (0: not given). A tensor that belongs to
/// none is an error, as is a shape that does not fit. Throws Error naming file and tensor.
ImportedModule import_module(const SafetensorsFile& file, const std::string& prefix, int64_t window);

}  // namespace capstan
