// Which rows of a tensor a file has; the others are zero. A table of n-grams has many rows that no text leads to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace capstan {

class StoredRows {
 public:
  /// Row r is stored if bit r % 8 of byte r / 8 is set. Throws std::invalid_argument unless the bits are those of
  /// `rows` rows.
  StoredRows(int64_t rows, std::vector<unsigned char> bits);
  /// Bytes of the bits.
  static int64_t bytes_of(int64_t rows) { return rows / 8 + (rows % 8 != 0 ? 1 : 0); }

  int64_t rows() const { return rows_; }
  int64_t count() const { return before_.back(); }  // of those that are stored
  bool has(int64_t row) const { return (bits_[static_cast<size_t>(row / 8)] >> (row % 8) & 1) != 0; }
  /// The number of stored rows before this one.
  int64_t before(int64_t row) const;
  const std::vector<unsigned char>& bits() const { return bits_; }

 private:
  int64_t rows_;
  std::vector<unsigned char> bits_;
  std::vector<int64_t> before_;  // for every block of bits, and at the end
};

}  // namespace capstan
