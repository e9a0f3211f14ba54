// Token ids of 1, 2 or 4 bytes in a ByteStore; and the fingerprint. The bytes that are hashed must not change:
// tests/data/test_token_row.cpp and test_data_source.cpp.
#include "data/files/token_row.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/error.hpp"

namespace capstan {

TokenRow::TokenRow(int width, std::string folder, size_t max_in_memory)
    : width_(width),
      max_in_memory_(max_in_memory),
      bytes_(std::make_unique<ByteStore>(std::move(folder), max_in_memory)) {
  check(width == 1 || width == 2 || width == 4, "token row: {} bytes per token", width);
}

TokenRow TokenRow::of_file(const std::string& path, int width) {
  TokenRow row(width);
  row.bytes_ = ByteStore::of_file(path);
  if (row.bytes_->size() % width != 0)
    throw Error(
        fmt::format("{}: has {} bytes, but a token has {}; remove its folder", path, row.bytes_->size(), width));
  return row;
}

std::string TokenRow::bytes_of(const std::vector<int32_t>& tokens, int width) {
  if (width == 1) return {tokens.begin(), tokens.end()};
  const auto each = static_cast<size_t>(width);
  std::string bytes(tokens.size() * each, '\0');
  for (size_t i = 0; i < tokens.size(); ++i) std::memcpy(&bytes[i * each], &tokens[i], each);  // little-endian
  return bytes;
}

void TokenRow::append(const std::vector<int32_t>& tokens) {
  uint32_t largest = 0;
  for (const int32_t token : tokens) largest = std::max(largest, static_cast<uint32_t>(token));
  if (const int needed = width_for(int64_t{largest} + 1); needed > width_) widen(needed);
  bytes_->append(bytes_of(tokens, width_));
}

/// Writes all tokens anew, since one is about to be appended that needs more bytes.
void TokenRow::widen(int width) {
  TokenRow wide(width, bytes_->folder(), max_in_memory_);
  for_blocks([&](const std::vector<int32_t>& tokens) { wide.bytes_->append(bytes_of(tokens, width)); });
  *this = std::move(wide);
}

int32_t TokenRow::operator[](int64_t place) const {
  int32_t token;
  copy(place, place + 1, &token);
  return token;
}

void TokenRow::check_range(int64_t begin, int64_t end) const {
  check(begin >= 0 && begin <= end && end <= size(), "token row: [{}, {}) is not within {} tokens", begin, end, size());
}

void TokenRow::copy(int64_t begin, int64_t end, int32_t* to) const {
  check_range(begin, end);
  const auto count = static_cast<size_t>(end - begin), width = static_cast<size_t>(width_);
  // The bytes go to the end of the memory, where each is read before a token is written over it.
  auto* const bytes = reinterpret_cast<unsigned char*>(to) + count * (sizeof(int32_t) - width);
  bytes_->read(begin * width_, bytes, count * width);
  if (width == 1)
    for (size_t i = 0; i < count; ++i) to[i] = bytes[i];
  if (width == 2)
    for (size_t i = 0; i < count; ++i) to[i] = bytes[2 * i] + (bytes[2 * i + 1] << 8);
}

std::vector<int32_t> TokenRow::slice(int64_t begin, int64_t end) const {
  check_range(begin, end);
  std::vector<int32_t> tokens(static_cast<size_t>(end - begin));
  copy(begin, end, tokens.data());
  return tokens;
}

bool TokenRow::read_bytes(int64_t begin, int64_t end, std::string& to) const {
  check_range(begin, end);
  if (width_ != 1) return false;
  to.resize(static_cast<size_t>(end - begin));
  bytes_->read(begin, to.data(), to.size());
  return true;
}

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
  tokens.for_blocks([this](const std::vector<int32_t>& block) {
    part({reinterpret_cast<const char*>(block.data()), block.size() * sizeof(int32_t)});
  });
  return *this;
}

}  // namespace capstan
