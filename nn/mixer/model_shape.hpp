// The rules that join a mixer's keys with those of the model around it. A mixer's config may have, in addition to its
// describe(),
//   void validate(const MineConfig& c, const ModelShape& model, Problems& problems);
// with paths relative to the mixer ("heads"). It is called for every configuration, read from a file or not.
#pragma once

#include <cstdint>

#include "core/config/schema.hpp"

namespace capstan {

/// What a mixer's rules may ask of the model's configuration.
struct ModelShape {
  int64_t width = 0;
  int64_t max_length = 0;
};

/// Adds a problem of the key `heads` unless the heads divide the width.
void check_heads(int64_t heads, const ModelShape& model, Problems& problems);

}  // namespace capstan
