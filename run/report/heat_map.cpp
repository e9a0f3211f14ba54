// Draws matrices as pictures, pooled to a size that can be shown. tests/run/test_report_parts.cpp.
#include "run/report/heat_map.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "core/base/error.hpp"
#include "core/strings/base64.hpp"
#include "run/report/html.hpp"

namespace capstan {
namespace {

constexpr size_t max_cells = 128;  // of a side of the picture
/// Distinguishable with every kind of colour blindness, on light and dark backgrounds.
constexpr std::array<uint8_t, 3> orange{230, 97, 1}, blue{33, 113, 200}, grey{128, 128, 128};

Pixels coloured(const Matrix& matrix, float limit) {
  Pixels pixels{static_cast<uint32_t>(matrix.columns), static_cast<uint32_t>(matrix.rows), {}};
  for (const float value : matrix.values) {
    const bool has_value = std::isfinite(value);
    const auto& colour = !has_value ? grey : value > 0 ? orange : blue;
    const float opacity = has_value ? std::min(1.0F, std::abs(value) / limit) : 0.16F;
    pixels.rgba.insert(pixels.rgba.end(), colour.begin(), colour.end());
    pixels.rgba.push_back(static_cast<uint8_t>(std::lround(255 * opacity)));
  }
  return pixels;
}

std::string map_svg(const HeatMap& map, float limit) {
  constexpr double left = 34, top = 6, side = 180;
  const std::string picture = to_base64(to_png(coloured(pooled(map.matrix, max_cells), limit)));
  std::string out = fmt::format(
      "<figure class=\"map\"><figcaption>{0}</figcaption><svg viewBox=\"0 0 222 206\" role=\"img\" aria-label=\"{0}\">"
      "<image x=\"{1}\" y=\"{2}\" width=\"{3}\" height=\"{3}\" preserveAspectRatio=\"none\" "
      "href=\"data:image/png;base64,{4}\"/><rect class=\"frame\" x=\"{1}\" y=\"{2}\" width=\"{3}\" height=\"{3}\"/>",
      escaped(map.title), left, top, side, picture);
  out += fmt::format(
      "<text class=\"end\" x=\"{0}\" y=\"{1}\">0</text><text class=\"end\" x=\"{0}\" y=\"{2}\">{3}</text>"
      "<text class=\"middle\" transform=\"translate(12 {4}) rotate(-90)\">{5}</text>",
      left - 4, top + 10, top + side, map.matrix.rows - 1, top + side / 2, escaped(map.row_label));
  out += fmt::format(
      "<text x=\"{0}\" y=\"{1}\">0</text><text class=\"end\" x=\"{2}\" y=\"{1}\">{3}</text>"
      "<text class=\"middle\" x=\"{4}\" y=\"{1}\">{5}</text></svg></figure>\n",
      left, top + side + 14, left + side, map.matrix.columns - 1, left + side / 2, escaped(map.column_label));
  return out;
}

}  // namespace

Matrix pooled(const Matrix& matrix, size_t most) {
  Matrix out{std::min(matrix.rows, most), std::min(matrix.columns, most), {}};
  if (out.rows == matrix.rows && out.columns == matrix.columns) return matrix;
  for (size_t row = 0; row < out.rows; ++row) {
    for (size_t column = 0; column < out.columns; ++column) {
      double sum = 0;
      size_t count = 0;
      for (size_t r = row * matrix.rows / out.rows; r < (row + 1) * matrix.rows / out.rows; ++r) {
        for (size_t c = column * matrix.columns / out.columns; c < (column + 1) * matrix.columns / out.columns; ++c) {
          if (!std::isfinite(matrix.at(r, c))) continue;
          sum += static_cast<double>(matrix.at(r, c));
          ++count;
        }
      }
      out.values.push_back(count > 0 ? static_cast<float>(sum / static_cast<double>(count)) : NAN);
    }
  }
  return out;
}

float colour_limit(const std::vector<HeatMap>& maps) {
  std::vector<float> magnitudes;
  for (const HeatMap& map : maps)
    for (const float value : map.matrix.values)
      if (std::isfinite(value) && value != 0) magnitudes.push_back(std::abs(value));
  if (magnitudes.empty()) return std::numeric_limits<float>::min();
  const auto place = magnitudes.begin() + static_cast<std::ptrdiff_t>((magnitudes.size() - 1) * 995 / 1000);
  std::nth_element(magnitudes.begin(), place, magnitudes.end());
  return *place;
}

std::string to_html(const std::vector<HeatMap>& maps, const std::string& caption) {
  if (maps.empty()) return "";
  const float limit = colour_limit(maps);
  const auto any_below = [](const HeatMap& map) {
    return std::any_of(map.matrix.values.begin(), map.matrix.values.end(), [](float v) { return v < 0; });
  };
  const bool is_signed = std::any_of(maps.begin(), maps.end(), any_below);
  std::string out = "<div class=\"maps\">";
  for (const HeatMap& map : maps) out += map_svg(map, limit);
  out +=
      fmt::format("</div><p class=\"scale\">{}<span class=\"bar {}\"></span>{:.3g} <span>{}</span></p>\n",
                  is_signed ? fmt::format("{:.3g}", -limit) : "0", is_signed ? "two" : "one", limit, escaped(caption));
  return out;
}

namespace {

void append_big_endian(std::string& out, uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(number >> shift & 0xFF);
}

void append_chunk(std::string& out, const std::string& type, const std::string& data) {
  append_big_endian(out, static_cast<uint32_t>(data.size()));
  const std::string content = type + data;
  out += content;
  append_big_endian(out, static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(content.data()),
                                                     static_cast<uInt>(content.size()))));
}

std::string deflated(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string out(size, '\0');
  const int status = compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(text.data()),
                               text.size(), Z_BEST_COMPRESSION);
  if (status != Z_OK) throw Error("png: zlib could not compress the picture");
  out.resize(size);
  return out;
}

}  // namespace

std::string to_png(const Pixels& pixels) {
  std::string header;
  append_big_endian(header, pixels.width);
  append_big_endian(header, pixels.height);
  header += {8, 6, 0, 0, 0};  // 8 bits, colour with opacity, deflate, filters of type 0, not interlaced
  std::string rows;
  for (size_t row = 0; row < pixels.height; ++row) {
    rows += '\0';  // no filter
    const size_t bytes = size_t{4} * pixels.width;
    rows.append(reinterpret_cast<const char*>(pixels.rgba.data()) + row * bytes, bytes);
  }
  std::string out = "\x89PNG\r\n\x1A\n";
  append_chunk(out, "IHDR", header);
  append_chunk(out, "IDAT", deflated(rows));
  append_chunk(out, "IEND", "");
  return out;
}

}  // namespace capstan
