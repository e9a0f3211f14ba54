// Which rows of a tensor a file has; the others are zero. A table of n-grams has many rows that no text leads to. Part
// of the file format of core/io/safetensors.hpp, whose test holds both forms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace capstan {

/// The set of stored rows, out of `rows` rows of a tensor. Immutable; shared by the tensors of a file.
class StoredRows {
 public:
  /// How a file lists the stored rows. `bits`: one bit per row (see the constructor). `gaps`: for each stored row, a
  /// byte with the number of rows between it and the stored one before it; 255 stands for 255 rows and is followed by
  /// another byte. Where few rows are stored, it is the shorter one.
  enum class Form { bits, gaps };

  /// Row r is stored if bit r % 8 of byte r / 8 is set. Throws std::invalid_argument unless the bits are those of
  /// `rows` rows.
  StoredRows(int64_t rows, std::vector<unsigned char> bits, Form form = Form::bits);
  /// Throws std::invalid_argument unless the gaps end within `rows` rows, and for more rows than gaps may name (2^26).
  static StoredRows from_gaps(int64_t rows, const unsigned char* gaps, int64_t bytes);
  /// Bytes that the bits of `rows` rows take.
  static int64_t bytes_of(int64_t rows) { return rows / 8 + (rows % 8 != 0 ? 1 : 0); }

  int64_t rows() const { return rows_; }
  int64_t count() const { return before_.back(); }  // rows that are stored
  bool has(int64_t row) const { return (bits_[static_cast<size_t>(row / 8)] >> (row % 8) & 1) != 0; }
  /// visit(row) for the stored rows, in their order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (size_t byte = 0; byte < bits_.size(); ++byte)
      for (unsigned bits = bits_[byte]; bits != 0; bits &= bits - 1)
        visit(static_cast<int64_t>(8 * byte) + __builtin_ctz(bits));
  }
  /// How many stored rows precede `row`.
  int64_t before(int64_t row) const;
  Form form() const { return form_; }
  /// The bytes by which a file lists the stored rows, in this form.
  const std::vector<unsigned char>& bytes() const { return form_ == Form::bits ? bits_ : gaps_; }

 private:
  int64_t rows_;
  Form form_;
  std::vector<unsigned char> bits_, gaps_;
  std::vector<int64_t> before_;  // stored rows in front of every block of bits, and in all
};

}  // namespace capstan
