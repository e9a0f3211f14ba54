// Matrices as pictures.
#pragma once

#include <string>
#include <vector>

namespace capstan {

/// Rows from top to bottom. NAN: not there (a source that a target does not see).
struct Matrix {
  size_t rows = 0, columns = 0;
  std::vector<float> values;
  float at(size_t row, size_t column) const { return values[row * columns + column]; }
};

struct HeatMap {
  std::string title;
  Matrix matrix;
  std::string row_label, column_label;
};

/// Averages of blocks, so that neither side is longer than `most`; NAN where a whole block is.
Matrix pooled(const Matrix& matrix, size_t most);

/// What the strongest colour stands for: the 99.5th percentile of the magnitudes in all maps,
/// at least the smallest positive number.
float colour_limit(const std::vector<HeatMap>& maps);

/// A group of figures with one scale of colours: orange above 0, blue below, transparent at 0, grey where there is
/// nothing; `caption` says what the numbers are.
std::string to_html(const std::vector<HeatMap>& maps, const std::string& caption);

}  // namespace capstan
