// What `capstan import` records in the metadata of the file it writes, beside the weights.
#pragma once

#include "core/config/schema.hpp"
#include "nn/systems/mixer_config.hpp"

namespace capstan {

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
