// A long row of token ids, in memory or in a file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace capstan {

/// Read-only; copies share the tokens. Any number of threads may read.
class TokenRow {
 public:
  TokenRow() = default;
  /// In memory.
  TokenRow(std::vector<int32_t> tokens);  // NOLINT(google-explicit-constructor): a row is what the vector holds
  /// A file of `size` tokens of `width` bytes each (1, 2 or 4, unsigned, little-endian), mapped. Reading takes a
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

}  // namespace capstan
