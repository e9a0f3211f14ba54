#include "data/text_file.hpp"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "core/error.hpp"

namespace capstan {
namespace {

constexpr size_t block = 1 << 18;

bool has_ending(const std::string& path, const std::string& ending) {
  return path.size() > ending.size() && path.compare(path.size() - ending.size(), ending.size(), ending) == 0;
}

bool is_gzip_name(const std::string& path) { return has_ending(path, ".gz"); }
bool is_zstd_name(const std::string& path) { return has_ending(path, ".zst"); }

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
  void operator()(gzFile_s* file) const { gzclose_r(file); }
};
struct FreeStream {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};
using PlainFile = std::unique_ptr<std::FILE, CloseFile>;

PlainFile open_plain(const std::string& path) {
  PlainFile file(std::fopen(path.c_str(), "rb"));
  if (!file) throw Error(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  return file;
}

/// Fewer than `size` bytes at the end of the file only.
size_t read_block(std::FILE* file, void* block_begin, size_t size, const std::string& path) {
  const size_t got = std::fread(block_begin, 1, size, file);
  if (got < size && std::ferror(file)) throw Error(fmt::format("{}: reading failed: {}", path, std::strerror(errno)));
  return got;
}

void check_readable(const std::string& path) {
  std::error_code problem;
  const auto status = std::filesystem::status(path, problem);
  if (!std::filesystem::exists(status))
    throw Error(fmt::format("{}: no such file; check the path (the program runs in {})", path,
                            std::filesystem::current_path(problem).string()));
  if (std::filesystem::is_directory(status)) throw Error(fmt::format("{}: is a folder, a file is needed here", path));
}

/// The first `limit` bytes of a plain file.
std::string read_plain(const std::string& path, size_t limit) {
  const PlainFile file = open_plain(path);
  std::string text;
  while (text.size() < limit) {
    const size_t before = text.size(), wanted = std::min(block, limit - before);
    text.resize(before + wanted);
    const size_t got = read_block(file.get(), &text[before], wanted, path);
    text.resize(before + got);
    if (got < wanted) break;
  }
  return text;
}

/// The first `limit` bytes of a gzip file's content.
std::string read_gzip(const std::string& path, size_t limit) {
  const std::unique_ptr<gzFile_s, CloseFile> file(gzopen(path.c_str(), "rb"));
  if (!file) throw Error(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  gzbuffer(file.get(), block);
  std::string text;
  while (text.size() < limit) {
    const size_t before = text.size(), wanted = std::min(block, limit - before);
    text.resize(before + wanted);
    const int got = gzread(file.get(), &text[before], static_cast<unsigned>(wanted));
    int state = Z_OK;
    const char* message = gzerror(file.get(), &state);
    if (state == Z_BUF_ERROR)  // a short read, so it must be looked at before `got`
      throw Error(fmt::format("{}: the gzip file ends too early; it was not copied or packed in full", path));
    if (got < 0) throw Error(fmt::format("{}: damaged gzip file ({})", path, message));
    text.resize(before + static_cast<size_t>(got));
    if (gzdirect(file.get()) != 0 && got > 0)
      throw Error(fmt::format("{}: is not a gzip file; take .gz off its name if it is plain text", path));
    if (static_cast<size_t>(got) < wanted) break;
  }
  return text;
}

/// The first `limit` bytes of a zstd file's content; it may hold several frames.
std::string read_zstd(const std::string& path, size_t limit) {
  const PlainFile file = open_plain(path);
  const std::unique_ptr<ZSTD_DStream, FreeStream> stream(ZSTD_createDStream());
  ZSTD_DCtx_setParameter(stream.get(), ZSTD_d_windowLogMax, ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound);
  std::string packed(block, '\0'), text;
  ZSTD_inBuffer in{packed.data(), 0, 0};
  size_t missing = 0;     // bytes that the frame still needs; 0 between frames
  bool was_full = false;  // the stream may hold more of the frame than there was room for
  while (text.size() < limit) {
    if (in.pos == in.size && (missing == 0 || !was_full)) {
      in = {packed.data(), read_block(file.get(), packed.data(), packed.size(), path), 0};
      if (in.size == 0 && missing > 0)
        throw Error(fmt::format("{}: the zstd file ends too early; it was not copied or packed in full", path));
      if (in.size == 0) break;
    }
    const size_t before = text.size(), wanted = std::min(block, limit - before);
    text.resize(before + wanted);
    ZSTD_outBuffer out{&text[before], wanted, 0};
    missing = ZSTD_decompressStream(stream.get(), &out, &in);
    text.resize(before + out.pos);
    was_full = out.pos == wanted;
    if (ZSTD_isError(missing) && ZSTD_getErrorCode(missing) == ZSTD_error_prefix_unknown && text.empty())
      throw Error(fmt::format("{}: is not a zstd file; take .zst off its name if it is plain text", path));
    if (ZSTD_isError(missing)) throw Error(fmt::format("{}: damaged zstd file ({})", path, ZSTD_getErrorName(missing)));
  }
  return text;
}

std::string read_front(const std::string& path, size_t limit) {
  if (is_gzip_name(path)) return read_gzip(path, limit);
  return is_zstd_name(path) ? read_zstd(path, limit) : read_plain(path, limit);
}

}  // namespace

std::string read_text_file(const std::string& path) {
  check_readable(path);
  std::string text = read_front(path, std::string::npos);
  if (text.empty()) throw Error(fmt::format("{}: the file is empty", path));
  return text;
}

std::string unpacked_name(const std::string& path) {
  if (is_gzip_name(path)) return path.substr(0, path.size() - 3);
  return is_zstd_name(path) ? path.substr(0, path.size() - 4) : path;
}

bool looks_binary(const std::string& path) {
  check_readable(path);
  return read_front(path, 8192).find('\0') != std::string::npos;
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
