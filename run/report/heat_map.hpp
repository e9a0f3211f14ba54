// Matrices as pictures, for the biases and weights of mixers in `capstan report` (model_view, page.cpp).
// tests/run/test_report_parts.cpp holds pooling, colours and PNG.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace capstan {

/// Rows from top to bottom. NAN: no value (a source that the target does not attend to).
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

/// Averages over blocks, so that neither side is longer than `most`; NAN where a whole block is NAN.
Matrix pooled(const Matrix& matrix, size_t most);

/// The value of the strongest colour: the 99.5th percentile of the magnitudes in all maps,
/// at least the smallest positive number.
float colour_limit(const std::vector<HeatMap>& maps);

/// A group of figures with one scale of colours: orange above 0, blue below, transparent at 0, grey without a
/// value; `caption` says what the values are.
std::string to_html(const std::vector<HeatMap>& maps, const std::string& caption);

// Pictures as PNG.

/// width x height pixels, 4 bytes each: red, green, blue, opacity.
struct Pixels {
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> rgba;
};

/// PNG (ISO/IEC 15948), 8 bits a channel, no filter.
std::string to_png(const Pixels& pixels);

}  // namespace capstan
