#include "run/predictions/gzip_baseline.hpp"

#include <zlib.h>

#include <vector>

#include "core/base/error.hpp"

namespace capstan {

int64_t gzip_size(std::string_view text) {
  z_stream stream{};
  constexpr int level = 9, gzip_window = 15 + 16, memory = 8;
  if (deflateInit2(&stream, level, Z_DEFLATED, gzip_window, memory, Z_DEFAULT_STRATEGY) != Z_OK)
    throw Error("gzip: zlib could not be initialised");
  std::vector<unsigned char> out(deflateBound(&stream, text.size()));
  stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&stream, Z_FINISH);
  const auto size = static_cast<int64_t>(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw Error("gzip: zlib could not compress the text");
  return size;
}

}  // namespace capstan
