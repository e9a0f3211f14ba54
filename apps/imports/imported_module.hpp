// The result of importing a published module, and what its file does not say.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nn/blocks/block.hpp"

namespace capstan {

/// What computes what the imported module computes, and its parameters under their names in Capstan.
struct ImportedModule {
  std::string source;  // the name of the published module
  /// Norms, feed-forward network and their place matter for a block only: a module with norm and residual.
  LayerConfig layer;
  bool is_block = false;
  int64_t width = 0, max_length = 0;  // max_length 0: any number of tokens
  bool time_first = false;            // the module's input is (T, B, D)
  struct Tensor {
    std::vector<int64_t> shape;
    std::vector<float> values;
  };
  std::map<std::string, Tensor> parameters;  // of the mixer
  std::map<std::string, Tensor> block;       // of what is beside the mixer in its block: mixer_norm.gain
};

enum class ImportActivation { relu, gelu };

/// What a file does not say about its module; 0, false or nothing: not given.
struct ImportHints {
  int64_t window = 0;    // AFTLocal
  int64_t length = 0;    // GAU: tokens of the texts it is used on
  int64_t chunk = 0;     // FLASH: its group_size
  bool laplace = false;  // GAU and FLASH: the kernel, instead of relu^2
  int64_t heads = 0;     // MultiheadAttention and TransformerEncoderLayer
  bool shift_tokens = false;
  std::optional<ImportActivation> activation = {};  // TransformerEncoderLayer
  bool norm_first = false;                          // the same
};

}  // namespace capstan
