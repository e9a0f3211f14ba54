// The result of importing a published module or model, and what its file does not say. Importers make it, import_run
// writes it, and run/warm_start reads ImportedConfig back from the file's metadata.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/config/schema.hpp"
#include "models/task_config.hpp"
#include "nn/systems/mixer_config.hpp"

namespace capstan {

struct ImportedTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
};
using ImportedTensors = std::map<std::string, ImportedTensor>;

/// What computes what the imported module computes, and its parameters under their names in Capstan.
struct ImportedModule {
  std::string source;  // the name of the published module
  /// Norms, feed-forward network and their place matter for a block only: a module with norm and residual.
  LayerConfig layer;
  bool is_block = false;
  int64_t width = 0, max_length = 0;        // max_length 0: any number of tokens
  bool time_first = false;                  // the module's input is (T, B, D)
  ImportedTensors parameters;               // of the mixer
  ImportedTensors block;                    // of what is beside the mixer in its block: mixer_norm.gain
  std::vector<std::string> notes;           // what its user should know
  std::vector<std::string> approximations;  // what is computed otherwise, and the size of the effect
};

/// A whole imported model.
struct ImportedModel {
  std::string source;  // the name of the published model
  TaskConfig config;
  int64_t vocabulary = 0, classes = 0;
  ImportedTensors parameters;
  std::vector<std::string> notes, approximations;
};

enum class ImportActivation { relu, gelu };

/// What a file does not say about its module; 0, false or nothing: not given.
struct ImportHints {
  int64_t window = 0;                               // AFTLocal
  int64_t length = 0;                               // GAU: tokens of the texts it is used on
  int64_t chunk = 0;                                // FLASH: its group_size
  bool laplace = false;                             // GAU and FLASH: the kernel, instead of relu^2
  int64_t heads = 0;                                // MultiheadAttention and TransformerEncoderLayer
  bool shift_tokens = false;                        // FLASH: it was made with shift_tokens
  std::optional<ImportActivation> activation = {};  // TransformerEncoderLayer
  bool norm_first = false;                          // TransformerEncoderLayer: norms before attention, not after it
  std::optional<double> norm_eps = {};              // of LayerNorm
  bool causal = false;                              // tokens do not see later ones
  std::optional<int64_t> mask_token = {};           // masked models: the id that stands for a hidden token
  bool approximate = false;                         // accept what cannot be met exactly
};

// What `capstan import` records in the metadata of the file it writes, beside the weights.

/// The mixer as a layer of a configuration has it: metadata "mixer". Metadata "into" names the mixer in the model;
/// metadata "layer" is the whole layer, where the file also holds what is beside the mixer in its block.
struct ImportedConfig {
  MixerConfig mixer;
};
template <class Fields>
void describe(Fields& f, ImportedConfig& c) {
  f("mixer", c.mixer, any(), "the imported mixer");
}

}  // namespace capstan
