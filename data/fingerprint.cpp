#include "data/fingerprint.hpp"

#define XXH_STATIC_LINKING_ONLY  // shows the state's size, so that it needs no allocation of its own
#include <xxhash.h>

#include "core/error.hpp"

namespace capstan {

struct Fingerprint::State {
  XXH3_state_t hash;
};

Fingerprint::Fingerprint() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->hash); }
Fingerprint::~Fingerprint() = default;

Fingerprint& Fingerprint::add(std::string_view bytes) {
  const uint64_t length = bytes.size();
  XXH3_128bits_update(&state_->hash, &length, sizeof(length));
  XXH3_128bits_update(&state_->hash, bytes.data(), bytes.size());
  return *this;
}

Fingerprint& Fingerprint::add(const std::vector<int32_t>& values) {
  return add(std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int32_t)));
}

Fingerprint& Fingerprint::add(const std::vector<int64_t>& values) {
  return add(std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)));
}

std::string Fingerprint::hex() const {
  const XXH128_hash_t digest = XXH3_128bits_digest(&state_->hash);
  return fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
}

}  // namespace capstan
