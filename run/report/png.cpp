#include "run/report/png.hpp"

#include <zlib.h>

#include "core/base/error.hpp"

namespace capstan {
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
  header += {8, 6, 0, 0, 0};  // bits, colour with opacity; deflate, filters of type 0, not interlaced
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
