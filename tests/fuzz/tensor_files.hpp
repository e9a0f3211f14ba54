// A mutator for safetensors files, for the targets that read them.
#pragma once

#include <string>

#include "tests/fuzz/target.hpp"

namespace capstan::fuzz {

/// Changes a tensor's name, type, shape or place, the metadata, or the data. Mostly, the offsets are then laid out anew
/// and the checksum is made right, so that the change gets past the first checks.
std::string change_tensor_file(const std::string& input, size_t most, std::mt19937& random, const Change& change);

/// Header and data as a file.
std::string tensor_file(const std::string& header, const std::string& data);

}  // namespace capstan::fuzz
