// A long row of token ids, in memory or in a mapped file, for data/text; and the fingerprint of data and tokenizers.
// Runs save fingerprints and compare them when they go on, so the bytes that are hashed must not change:
// tests/data/test_token_row.cpp and test_data_source.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/hash.hpp"

namespace capstan {

/// Read-only; copies share the tokens. Any number of threads may read.
class TokenRow {
 public:
  TokenRow() = default;
  /// A row in memory.
  TokenRow(std::vector<int32_t> tokens);  // NOLINT(google-explicit-constructor): a row is what the vector holds
  /// A mapped file of `size` tokens of `width` bytes each (1, 2 or 4; unsigned, little-endian). Reading takes a
  /// bounded amount of memory, in whatever order. Throws Error when the file is not of that size.
  static TokenRow mapped(const std::string& path, int64_t size, int width);
  /// The least width that holds every id of a vocabulary.
  static int width_for(int64_t vocabulary);

  int64_t size() const { return size_; }
  int32_t operator[](int64_t place) const;
  /// Writes tokens [begin, end) to `to`. Throws std::invalid_argument unless 0 <= begin <= end <= size().
  void copy(int64_t begin, int64_t end, int32_t* to) const;
  std::vector<int32_t> slice(int64_t begin, int64_t end) const;
  std::vector<int32_t> to_vector() const { return slice(0, size_); }

 private:
  struct Mapping;

  int64_t size_ = 0;
  std::shared_ptr<const std::vector<int32_t>> memory_;
  std::shared_ptr<const Mapping> mapping_;
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
