#include "data/files/fingerprint.hpp"

#include <algorithm>

namespace capstan {

Fingerprint& Fingerprint::begin(uint64_t size) { return part({reinterpret_cast<const char*>(&size), sizeof(size)}); }

Fingerprint& Fingerprint::part(std::string_view bytes) {
  hash_.add(bytes);
  return *this;
}

Fingerprint& Fingerprint::add(std::string_view bytes) { return begin(bytes.size()).part(bytes); }

Fingerprint& Fingerprint::add(const std::vector<int32_t>& values) {
  return add(std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int32_t)));
}

Fingerprint& Fingerprint::add(const std::vector<int64_t>& values) {
  return add(std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)));
}

Fingerprint& Fingerprint::add(const TokenRow& tokens) {
  begin(static_cast<uint64_t>(tokens.size()) * sizeof(int32_t));
  constexpr int64_t block = 1 << 18;
  std::vector<int32_t> values(static_cast<size_t>(std::min(block, tokens.size())));
  for (int64_t at = 0; at < tokens.size(); at += block) {
    const int64_t end = std::min(tokens.size(), at + block);
    tokens.copy(at, end, values.data());
    part({reinterpret_cast<const char*>(values.data()), static_cast<size_t>(end - at) * sizeof(int32_t)});
  }
  return *this;
}

}  // namespace capstan
