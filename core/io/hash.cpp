// Hash of hash.hpp, by xxHash. Saved runs contain its results: tests/core/io/test_file.cpp compares with the published
// function.
#include "core/io/hash.hpp"

#define XXH_STATIC_LINKING_ONLY  // shows the state's size, so that it needs no allocation of its own
#include <xxhash.h>

#include "core/base/error.hpp"

namespace capstan {

struct Hash::State {
  XXH3_state_t hash;
};

Hash::Hash() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->hash); }
Hash::~Hash() = default;

void Hash::add(const void* bytes, size_t count) { XXH3_128bits_update(&state_->hash, bytes, count); }

HashBits Hash::bits() const {
  const XXH128_hash_t digest = XXH3_128bits_digest(&state_->hash);
  return {digest.high64, digest.low64};
}

std::string Hash::hex() const {
  const HashBits digest = bits();
  return fmt::format("{:016x}{:016x}", digest[0], digest[1]);
}

HashBits hash_bits(std::string_view bytes) {
  const XXH128_hash_t digest = XXH3_128bits(bytes.data(), bytes.size());
  return {digest.high64, digest.low64};
}

std::string hash_hex(std::string_view bytes) {
  Hash hash;
  hash.add(bytes);
  return hash.hex();
}

}  // namespace capstan
