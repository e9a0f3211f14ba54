// Reads and writes large tables by their rows, most of which may be zeros: a table in a file is visited without all of
// it in memory. For nn/layers/ngram_table and train/linear; tests/nn/layers/test_ngram_table.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/io/safetensors.hpp"

namespace capstan {

/// Calls take(row, values) with the values of each row of a tensor, some of which are converted at a time. Rows of
/// zeros that the file leaves out are left out here, too.
template <class T, class Take>
void for_rows(const FileTensor& tensor, const Take& take) {
  constexpr int64_t piece = 4096;
  const FileTensor stored = tensor.without_zeros();
  const int64_t rows = stored.shape.at(0), width = stored.size / std::max<int64_t>(rows, 1);
  std::vector<T> values(static_cast<size_t>(piece * width));
  int64_t number = 0;
  const auto visit = [&](int64_t row) {
    const int64_t begin = number * width;
    if (number % piece == 0) stored.copy_part(begin, std::min(stored.size, begin + piece * width), values.data());
    take(row, values.data() + number % piece * width);
    ++number;
  };
  if (tensor.stored) return tensor.stored->for_each(visit);
  for (int64_t row = 0; row < rows; ++row) visit(row);
}

/// The rows of which has(row) is true, for a TensorToWrite whose other rows are zeros.
template <class Has>
std::shared_ptr<const StoredRows> rows_to_store(int64_t rows, const Has& has) {
  std::vector<unsigned char> bits(static_cast<size_t>(StoredRows::bytes_of(rows)), 0);
  for (int64_t row = 0; row < rows; ++row)
    if (has(row))
      bits[static_cast<size_t>(row / 8)] =
          static_cast<unsigned char>(bits[static_cast<size_t>(row / 8)] | 1U << (row % 8));
  return std::make_shared<const StoredRows>(rows, std::move(bits));
}

}  // namespace capstan
