// The hash of files and of what a run began with: XXH3-128, written as 32 hexadecimal digits. Checkpoints, token caches
// and saved sessions have it, so it cannot change. tests/core/io/test_file.cpp compares it with the published one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/no_copy.hpp"

namespace capstan {

/// The 16 bytes of a hash.
using HashBits = std::array<uint64_t, 2>;

/// Hash of bytes that come in pieces: where one piece ends and the next begins does not matter.
class Hash : NoCopy {
 public:
  Hash();
  ~Hash();

  void add(const void* bytes, size_t count);
  void add(std::string_view bytes) { add(bytes.data(), bytes.size()); }
  HashBits bits() const;
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

HashBits hash_bits(std::string_view bytes);
std::string hash_hex(std::string_view bytes);

}  // namespace capstan
