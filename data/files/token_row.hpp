// A long row of token ids, in memory or in a file: the tokens of every source of data; and the fingerprint of data and
// tokenizers. Runs save fingerprints and compare them when they go on, so the bytes that are hashed must not change:
// tests/data/test_token_row.cpp and test_data_source.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/byte_store.hpp"
#include "core/io/hash.hpp"

namespace capstan {

/// Ids that are appended, then read. Each takes 1, 2 or 4 bytes (unsigned, little-endian), and many are in a file
/// (ByteStore). Any number of threads may read while none appends.
class TokenRow {
 public:
  /// `width`: bytes per token at first. An id that needs more widens the row: with a tokenizer of bytes, texts of
  /// several columns have a 257th one, others can be read as bytes. `folder`, `max_in_memory`: of ByteStore.
  explicit TokenRow(int width, std::string folder = "", size_t max_in_memory = ByteStore::max_in_memory);
  TokenRow() : TokenRow(1) {}
  /// The tokens of a file, to which nothing is appended. Throws Error when it does not hold whole ones.
  static TokenRow of_file(const std::string& path, int width);
  /// The least width that holds every id of a vocabulary.
  static int width_for(int64_t vocabulary) { return vocabulary <= 1 << 8 ? 1 : vocabulary <= 1 << 16 ? 2 : 4; }
  /// The bytes of tokens that fit into `width`.
  static std::string bytes_of(const std::vector<int32_t>& tokens, int width);

  int64_t size() const { return bytes_->size() / width_; }
  int width() const { return width_; }
  void append(const std::vector<int32_t>& tokens);
  int32_t operator[](int64_t place) const;
  /// Writes tokens [begin, end) to `to`. Throws std::invalid_argument unless 0 <= begin <= end <= size().
  void copy(int64_t begin, int64_t end, int32_t* to) const;
  std::vector<int32_t> slice(int64_t begin, int64_t end) const;
  std::vector<int32_t> to_vector() const { return slice(0, size()); }
  /// Writes tokens [begin, end) as bytes; false if any token of the row has needed more than one.
  bool read_bytes(int64_t begin, int64_t end, std::string& to) const;
  /// Calls visit(tokens) for one block after the other.
  template <class Visit>
  void for_blocks(const Visit& visit) const {
    constexpr int64_t block = 1 << 18;
    for (int64_t at = 0; at < size(); at += block) visit(slice(at, at + block < size() ? at + block : size()));
  }

 private:
  void check_range(int64_t begin, int64_t end) const;
  void widen(int width);

  int width_;
  size_t max_in_memory_;
  std::unique_ptr<ByteStore> bytes_;
};

/// XXH3-128 over everything added: tells whether data or a tokenizer is still what a run began with. Each piece is
/// preceded by its length, so that moving a byte from one piece to the next shows.
class Fingerprint {
 public:
  Fingerprint& add(std::string_view bytes);
  Fingerprint& add(const std::vector<int32_t>& values);
  Fingerprint& add(const std::vector<int64_t>& values);
  /// Adds a row of tokens, with the result of adding it as a vector.
  Fingerprint& add(const TokenRow& tokens);
  /// Begins a piece of `size` bytes, whose parts part() adds; the result is that of add() with the whole piece.
  Fingerprint& begin(uint64_t size);
  Fingerprint& part(std::string_view bytes);
  /// 32 hexadecimal digits.
  std::string hex() const { return hash_.hex(); }

 private:
  Hash hash_;
};

}  // namespace capstan
