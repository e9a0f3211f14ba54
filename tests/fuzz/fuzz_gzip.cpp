// Texts packed with gzip. The mutator changes the text and packs it again, or changes the file.
#include <zlib.h>

#include "tests/fuzz/packed.hpp"

namespace capstan::fuzz {
namespace {

constexpr int gzip_format = 15 + 16;

std::string unpacked(std::string packed, size_t most) {
  z_stream stream{};
  if (inflateInit2(&stream, gzip_format) != Z_OK) return "";
  std::string text(most, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  inflate(&stream, Z_FINISH);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

std::string packed(std::string text, int level) {
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, gzip_format, 8, Z_DEFAULT_STRATEGY) != Z_OK) return "";
  std::string result(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

void read_gzip_file(std::string_view input) { read_packed(input, ".gz"); }

std::string change_gzip(const std::string& input, size_t most, std::mt19937& random, const Change& change) {
  std::string text = input;
  if (random() % 3 == 0) {
    change(text, most);
    return text;
  }
  text = unpacked(std::move(text), 4096);
  change(text, 4096);
  return packed(text, static_cast<int>(random() % 10));
}

const Registered gzip_target("gzip", read_gzip_file, change_gzip);

}  // namespace
}  // namespace capstan::fuzz
