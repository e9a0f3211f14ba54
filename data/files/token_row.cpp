// Token ids in memory or in a mapped file, of which pages that were read are given back; and the fingerprint. The bytes
// that are hashed must not change: tests/data/test_token_row.cpp and test_data_source.cpp.
#include "data/files/token_row.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/io/mapped_file.hpp"

namespace capstan {

/// Pages that were read count as memory of the process until they are given back. So all of them are given back
/// whenever about 64 MB were read: they mostly stay in the system's cache, and one that is read again soon costs a page
/// fault.
struct TokenRow::Mapping {
  MappedFile file;
  int width;
  mutable std::atomic<size_t> touched{0};

  Mapping(const std::string& path, int token_width) : file(path), width(token_width) {}

  void note(size_t bytes) const {
    constexpr size_t around = 1 << 18, most = 1 << 26;  // around: a fault also maps neighbours that are in the cache
    if (touched.fetch_add(bytes + around) + bytes + around < most) return;
    touched = 0;
    file.release(0, file.size());
  }
};

TokenRow::TokenRow(std::vector<int32_t> tokens)
    : size_(static_cast<int64_t>(tokens.size())),
      memory_(std::make_shared<const std::vector<int32_t>>(std::move(tokens))) {}

TokenRow TokenRow::mapped(const std::string& path, int64_t size, int width) {
  check(size >= 0 && (width == 1 || width == 2 || width == 4), "token row: {} tokens of {} bytes", size, width);
  TokenRow row;
  row.size_ = size;
  const auto mapping = std::make_shared<Mapping>(path, width);
  if (mapping->file.size() != static_cast<size_t>(size) * static_cast<size_t>(width))
    throw Error(fmt::format("{}: has {} bytes instead of {} tokens of {} bytes; remove its folder", path,
                            mapping->file.size(), size, width));
  mapping->file.expect_jumps();
  row.mapping_ = mapping;
  return row;
}

int TokenRow::width_for(int64_t vocabulary) { return vocabulary <= 1 << 8 ? 1 : vocabulary <= 1 << 16 ? 2 : 4; }

int32_t TokenRow::operator[](int64_t place) const {
  int32_t token;
  copy(place, place + 1, &token);
  return token;
}

void TokenRow::copy(int64_t begin, int64_t end, int32_t* to) const {
  check(begin >= 0 && begin <= end && end <= size_, "token row: [{}, {}) is not within {} tokens", begin, end, size_);
  if (memory_) {
    std::copy(memory_->begin() + begin, memory_->begin() + end, to);
  } else if (begin < end) {
    const auto count = static_cast<size_t>(end - begin), width = static_cast<size_t>(mapping_->width);
    const unsigned char* const from = mapping_->file.data() + static_cast<size_t>(begin) * width;
    if (width == 1)
      std::copy_n(from, count, to);
    else if (width == 2)
      std::copy_n(reinterpret_cast<const uint16_t*>(from), count, to);
    else
      std::memcpy(to, from, count * width);
    mapping_->note(count * width);
  }
}

std::vector<int32_t> TokenRow::slice(int64_t begin, int64_t end) const {
  check(begin <= end, "token row: [{}, {}) is not a range", begin, end);
  std::vector<int32_t> tokens(static_cast<size_t>(end - begin));
  copy(begin, end, tokens.data());
  return tokens;
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
