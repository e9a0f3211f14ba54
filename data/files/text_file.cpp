#include "data/files/text_file.hpp"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <memory>
#include <new>

#include "core/io/regular_file.hpp"
#include "core/strings/affixes.hpp"

namespace capstan {
namespace {

constexpr size_t packed_block = 1 << 18;
/// For so many bytes of a file; not more than a small file needs.
size_t buffer_size(const RegularFile& file) {
  return static_cast<size_t>(std::clamp<uint64_t>(file.size() + 1, 4096, packed_block));
}

/// What a file may make this program reserve for its window: as much as the zstd program reads without being asked for more.
constexpr int zstd_window_log = 27;

bool is_gzip_name(const std::string& path) { return path != ".gz" && ends_with(path, ".gz"); }
bool is_zstd_name(const std::string& path) { return path != ".zst" && ends_with(path, ".zst"); }

struct CloseFile {
  void operator()(gzFile_s* file) const { gzclose_r(file); }
};
struct FreeStream {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};
using Take = std::function<bool(std::string_view)>;

void read_plain(RegularFile& file, size_t block, const Take& take) {
  std::string text(block, '\0');
  for (size_t got = block; got == block;) {
    got = file.read(text.data(), block);
    if (got > 0 && !take({text.data(), got})) return;
  }
}

void read_gzip(RegularFile& opened, size_t block, const Take& take) {
  const std::string& path = opened.path();
  const std::unique_ptr<gzFile_s, CloseFile> file(gzdopen(opened.descriptor(), "rb"));
  if (!file) throw std::bad_alloc();
  opened.release();
  gzbuffer(file.get(), static_cast<unsigned>(buffer_size(opened)));
  std::string text(block, '\0');
  for (size_t size = block; size == block;) {
    const int got = gzread(file.get(), text.data(), static_cast<unsigned>(block));
    int state = Z_OK;
    const char* message = gzerror(file.get(), &state);
    if (state == Z_BUF_ERROR)  // a short read, so it must be looked at before `got`
      throw Error(fmt::format("{}: the gzip file is truncated; copy or compress it again", path));
    if (got < 0) throw Error(fmt::format("{}: damaged gzip file ({})", path, message));
    if (gzdirect(file.get()) != 0 && got > 0)
      throw Error(fmt::format("{}: is not a gzip file; remove .gz from its name if it is plain text", path));
    size = static_cast<size_t>(got);
    if (got > 0 && !take({text.data(), size})) return;
  }
}

/// The file may hold several frames.
void read_zstd(RegularFile& file, size_t block, const Take& take) {
  const std::string& path = file.path();
  const std::unique_ptr<ZSTD_DStream, FreeStream> stream(ZSTD_createDStream());
  if (!stream) throw std::bad_alloc();
  ZSTD_DCtx_setParameter(stream.get(), ZSTD_d_windowLogMax, zstd_window_log);
  std::string packed(buffer_size(file), '\0'), text(block, '\0');
  ZSTD_inBuffer in{packed.data(), 0, 0};
  size_t missing = 0;  // bytes that the frame still needs; 0 between frames
  bool had_text = false;
  while (true) {
    if (in.pos == in.size) {  // zstd takes the last byte of a frame only when all of its text is out
      in = {packed.data(), file.read(packed.data(), packed.size()), 0};
      if (in.size == 0 && missing > 0)
        throw Error(fmt::format("{}: the zstd file is truncated; copy or compress it again", path));
      if (in.size == 0) return;
    }
    ZSTD_outBuffer out{text.data(), block, 0};
    missing = ZSTD_decompressStream(stream.get(), &out, &in);
    if (ZSTD_isError(missing) && ZSTD_getErrorCode(missing) == ZSTD_error_prefix_unknown && !had_text)
      throw Error(fmt::format("{}: is not a zstd file; remove .zst from its name if it is plain text", path));
    if (ZSTD_isError(missing) && ZSTD_getErrorCode(missing) == ZSTD_error_frameParameter_windowTooLarge)
      throw Error(fmt::format(
          "{}: was compressed with a window of more than {} MiB, which decompression would take as memory; compress it "
          "again with zstd --long={} or less",
          path, 1 << (zstd_window_log - 20), zstd_window_log));
    if (ZSTD_isError(missing)) throw Error(fmt::format("{}: damaged zstd file ({})", path, ZSTD_getErrorName(missing)));
    had_text = had_text || out.pos > 0;
    if (out.pos > 0 && !take({text.data(), out.pos})) return;
  }
}

}  // namespace

void read_blocks(const std::string& path, size_t block, const Take& take, int64_t max_mb) {
  const uint64_t most = static_cast<uint64_t>(std::clamp<int64_t>(max_mb, 0, int64_t{1} << 40)) * 1'000'000;
  uint64_t size = 0;
  const Take take_limited = [&](std::string_view part) {
    size += part.size();
    if (size > most)
      throw Error(fmt::format("{}: holds more than {} million bytes{}; raise data.max_file_mb if that is intended",
                              path, most / 1'000'000, is_packed_name(path) ? " when decompressed" : ""));
    return take(part);
  };
  RegularFile file(path);
  if (is_gzip_name(path))
    read_gzip(file, block, take_limited);
  else if (is_zstd_name(path))
    read_zstd(file, block, take_limited);
  else
    read_plain(file, block, take_limited);
}

std::string read_text_file(const std::string& path, int64_t max_mb) {
  std::string text;
  read_blocks(
      path, packed_block,
      [&](std::string_view part) {
        text += part;
        return true;
      },
      max_mb);
  if (text.empty()) throw empty_file(path);
  return text;
}

Error empty_file(const std::string& path) { return Error(fmt::format("{}: the file is empty", path)); }

bool is_packed_name(const std::string& path) { return is_gzip_name(path) || is_zstd_name(path); }

std::string unpacked_name(const std::string& path) {
  if (is_gzip_name(path)) return path.substr(0, path.size() - 3);
  return is_zstd_name(path) ? path.substr(0, path.size() - 4) : path;
}

bool looks_binary(const std::string& path) {
  bool found = false;
  read_blocks(path, 8192, [&](std::string_view front) {
    found = front.find('\0') != std::string_view::npos;
    return false;
  });
  return found;
}

bool Lines::next(Line& line) {
  if (rest_.empty()) return false;
  const size_t end = rest_.find('\n');
  line.text = rest_.substr(0, end);
  line.number = ++number_;
  rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
  if (!line.text.empty() && line.text.back() == '\r') line.text.remove_suffix(1);
  return true;
}

}  // namespace capstan
