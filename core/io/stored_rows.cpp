// Which rows are stored, as a bit each or as gaps between them, and how many are stored before a row: counts per block
// of 64 bytes, then bits. A part of a file format that must stay readable: tests/core/io/test_safetensors.cpp.
#include "core/io/stored_rows.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace capstan {
namespace {

constexpr size_t block_bytes = 64;
constexpr unsigned char more = 255;                     // a gap goes on
constexpr int64_t max_rows_of_gaps = int64_t{1} << 26;  // a gap may be any number of rows, whatever the file's size

int64_t count_bits(const std::vector<unsigned char>& bits, size_t begin, size_t end) {
  int64_t count = 0;
  for (size_t i = begin; i < end; ++i) count += __builtin_popcount(bits[i]);
  return count;
}

}  // namespace

StoredRows::StoredRows(int64_t rows, std::vector<unsigned char> bits, Form form)
    : rows_(rows), form_(form), bits_(std::move(bits)) {
  check(rows >= 0 && static_cast<int64_t>(bits_.size()) == bytes_of(rows), "stored rows: {} bytes for {} rows",
        bits_.size(), rows);
  check(rows % 8 == 0 || bits_.back() >> (rows % 8) == 0, "stored rows: there are bits after row {}", rows);
  int64_t count = 0;
  for (size_t at = 0; at < bits_.size(); at += block_bytes) {
    before_.push_back(count);
    count += count_bits(bits_, at, std::min(at + block_bytes, bits_.size()));
  }
  before_.push_back(count);
  if (form == Form::bits) return;
  check(rows <= max_rows_of_gaps, "stored rows: {} rows, of which gaps say which; at most {}", rows, max_rows_of_gaps);
  int64_t next = 0;  // after the stored row before
  for (int64_t row = 0; row < rows; ++row) {
    if (!has(row)) continue;
    int64_t gap = row - next;
    for (; gap >= more; gap -= more) gaps_.push_back(more);
    gaps_.push_back(static_cast<unsigned char>(gap));
    next = row + 1;
  }
}

StoredRows StoredRows::from_gaps(int64_t rows, const unsigned char* gaps, int64_t bytes) {
  check(rows >= 0 && rows <= max_rows_of_gaps, "stored rows: {} rows, of which gaps say which; at most {}", rows,
        max_rows_of_gaps);
  std::vector<unsigned char> bits(static_cast<size_t>(bytes_of(rows)), 0);
  int64_t row = 0;
  for (int64_t i = 0; i < bytes; ++i) {
    row += gaps[i];
    check(row < rows + (gaps[i] == more ? 1 : 0), "stored rows: a gap leads beyond row {}", rows);
    if (gaps[i] == more) continue;
    bits[static_cast<size_t>(row / 8)] |= static_cast<unsigned char>(1U << (row % 8));
    ++row;
  }
  check(bytes == 0 || gaps[bytes - 1] != more, "stored rows: the last gap does not end");
  return StoredRows(rows, std::move(bits), Form::gaps);
}

int64_t StoredRows::before(int64_t row) const {
  const auto byte = static_cast<size_t>(row / 8), block = byte / block_bytes;
  if (row >= rows_) return count();
  const unsigned lower = bits_[byte] & ((1U << (row % 8)) - 1U);
  return before_[block] + count_bits(bits_, block * block_bytes, byte) + __builtin_popcount(lower);
}

}  // namespace capstan
