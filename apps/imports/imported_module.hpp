// The result of importing a published module, and what its file does not say.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nn/mixers/mixer_config.hpp"

namespace capstan {

/// A mixer that computes what the imported module computes, and its parameters under their names in Capstan.
struct ImportedModule {
  std::string source;  // the name of the published module
  MixerConfig mixer;
  int64_t width = 0, max_length = 0;  // max_length 0: any number of tokens
  struct Tensor {
    std::vector<int64_t> shape;
    std::vector<float> values;
  };
  std::map<std::string, Tensor> parameters;
  std::map<std::string, Tensor> norm;  // gain and bias of a norm in front of the mixer: the block's mixer_norm
};

/// What a file does not say about its module; 0 or false: not given.
struct ImportHints {
  int64_t window = 0;    // AFTLocal
  int64_t length = 0;    // GAU: tokens of the texts it is used on
  int64_t chunk = 0;     // FLASH: its group_size
  bool laplace = false;  // GAU and FLASH: the kernel, instead of relu^2
};

}  // namespace capstan
