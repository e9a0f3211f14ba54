// A TextReader asks a source for blocks of 64 KB: a file, a decompressor that reads the file in blocks of its own, or
// standard input. Nothing is held but the present block, so a compressed file may unpack to any size, up to max_mb.
#include "data/files/text_file.hpp"

#include <poll.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "core/base/error.hpp"
#include "core/io/regular_file.hpp"
#include "core/strings/strings.hpp"
#include "core/strings/utf8.hpp"
#include "data/files/file_kind.hpp"

namespace capstan {
namespace {

constexpr size_t block_size = 1 << 16;

/// What a file may make this program reserve for its window: as much as the zstd program reads without being asked for
/// more.
constexpr int zstd_window_log = 27;

bool is_gzip_name(const std::string& path) { return path != ".gz" && ends_with(path, ".gz"); }
bool is_zstd_name(const std::string& path) { return path != ".zst" && ends_with(path, ".zst"); }

int wait_for_input(int milliseconds) {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return ::poll(&input, 1, milliseconds);
}

size_t read_input(char* to, size_t size) {
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, to, size);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno == EAGAIN)  // another program on the same terminal may have set O_NONBLOCK
      wait_for_input(-1);
    else if (errno != EINTR)
      throw Error(fmt::format("stdin: reading failed: {}", std::strerror(errno)));
  }
}

/// A file that must give as many bytes as it had when it was opened: the rest of one that is shortened meanwhile would
/// be missing without a word.
class WholeFile {
 public:
  explicit WholeFile(RegularFile file) : file_(std::move(file)) {}

  size_t read(char* to, size_t size) {
    const size_t got = file_.read(to, size);
    taken_ += got;
    if (got < size && taken_ < file_.size())
      throw Error(
          fmt::format("{}: was shortened while it was read, from {} to {} bytes; run the command again when nothing "
                      "writes to it",
                      path(), file_.size(), taken_));
    return got;
  }
  const std::string& path() const { return file_.path(); }
  uint64_t size() const { return file_.size(); }

 private:
  RegularFile file_;
  uint64_t taken_ = 0;
};

/// A compressed file, read in blocks for the decompressors below.
class PackedFile {
 protected:
  explicit PackedFile(RegularFile file)
      : file_(std::move(file)), packed_(std::clamp<size_t>(file_.size() + 1, 4096, block_size), '\0') {}
  /// The next piece of the file; empty at its end. `truncated`: more must come, so that the end is an Error.
  std::string_view piece(const char* kind, bool truncated) {
    const size_t got = file_.read(packed_.data(), packed_.size());
    if (got == 0 && truncated) fail(fmt::format("the {} file is truncated; copy or compress it again", kind));
    return {packed_.data(), got};
  }
  [[noreturn]] void fail(const std::string& what) const { throw Error(fmt::format("{}: {}", file_.path(), what)); }

 private:
  WholeFile file_;
  std::string packed_;
};

/// The file may hold several members, as `cat a.gz b.gz` makes them, and zeros after them (tar pads with these).
class GzipFile final : public PackedFile {
 public:
  explicit GzipFile(RegularFile file) : PackedFile(std::move(file)) {
    if (inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~GzipFile() { inflateEnd(&stream_); }

  size_t read(char* to, size_t size) {
    const auto room = static_cast<uInt>(std::min<size_t>(size, std::numeric_limits<uInt>::max()));
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = room;
    while (stream_.avail_out == room) {
      if (stream_.avail_in == 0) {
        const std::string_view more = piece("gzip", in_member_);
        if (more.empty()) return 0;
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(more.data()));
        stream_.avail_in = static_cast<uInt>(more.size());
      }
      if (!in_member_ && had_member_ && *stream_.next_in == 0) {
        ++stream_.next_in;
        --stream_.avail_in;
      } else {
        inflate_some(room);
      }
    }
    return room - stream_.avail_out;
  }

 private:
  void inflate_some(uInt room) {
    in_member_ = true;
    const int state = inflate(&stream_, Z_NO_FLUSH);
    if (state == Z_STREAM_END) {
      in_member_ = false;
      had_member_ = true;
      inflateReset(&stream_);
    } else if (state == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (state != Z_OK && state != Z_BUF_ERROR && stream_.avail_out == room) {
      // Text in front of the damage is given out first; zlib reports the damage once more at the next call.
      const std::string reason = stream_.msg != nullptr ? stream_.msg : zError(state);
      if (!had_member_ && reason == "incorrect header check")
        fail("is not a gzip file; remove .gz from its name if it is plain text");
      fail(fmt::format("damaged gzip file ({})", reason));
    }
  }

  z_stream stream_{};
  bool in_member_ = false, had_member_ = false;
};

/// The file may hold several frames, one after the other.
class ZstdFile final : public PackedFile {
 public:
  explicit ZstdFile(RegularFile file) : PackedFile(std::move(file)), stream_(ZSTD_createDStream()) {
    if (!stream_) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, zstd_window_log);
  }

  size_t read(char* to, size_t size) {
    ZSTD_outBuffer out{to, size, 0};
    while (out.pos == 0) {
      if (in_.pos == in_.size) {  // zstd takes the last byte of a frame only when all of its text is out
        const std::string_view more = piece("zstd", missing_ > 0);
        if (more.empty()) return 0;
        in_ = {more.data(), more.size(), 0};
      }
      missing_ = ZSTD_decompressStream(stream_.get(), &out, &in_);
      if (ZSTD_isError(missing_)) refuse();
    }
    had_text_ = true;
    return out.pos;
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };

  [[noreturn]] void refuse() const {
    const ZSTD_ErrorCode code = ZSTD_getErrorCode(missing_);
    if (code == ZSTD_error_prefix_unknown && !had_text_)
      fail("is not a zstd file; remove .zst from its name if it is plain text");
    if (code == ZSTD_error_frameParameter_windowTooLarge)
      fail(
          fmt::format("was compressed with a window of more than {} MiB, which decompression would take as memory; "
                      "compress it again with zstd --long={} or less",
                      1 << (zstd_window_log - 20), zstd_window_log));
    fail(fmt::format("damaged zstd file ({})", ZSTD_getErrorName(missing_)));
  }

  std::unique_ptr<ZSTD_DStream, Free> stream_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  size_t missing_ = 0;  // bytes that the frame still needs; 0 between frames
  bool had_text_ = false;
};

/// A function that reads a file, which it owns.
template <class File>
TextReader::Source source_of(RegularFile file) {
  return [file = std::make_shared<File>(std::move(file))](char* to, size_t size) { return file->read(to, size); };
}

}  // namespace

TextReader::TextReader(const std::string& path, int64_t max_mb, const char* remedy) : name_(path), max_mb_(max_mb) {
  RegularFile file(path, remedy);
  source_ = is_gzip_name(path)   ? source_of<GzipFile>(std::move(file))
            : is_zstd_name(path) ? source_of<ZstdFile>(std::move(file))
                                 : source_of<WholeFile>(std::move(file));
}

TextReader TextReader::input(const std::string& file, int64_t max_mb) {
  if (file == "-") return {"stdin", read_input, max_mb};
  TextReader reader(file, max_mb, "give a file, or - for standard input");
  if (reader.at_end()) throw empty_file(file);
  return reader;
}

bool TextReader::at_end() {
  if (at_ < filled_) return false;
  buffer_.resize(block_size);
  at_ = 0;
  filled_ = ended_ ? 0 : source_(buffer_.data(), buffer_.size());
  if (taken_ == 0) check_not_packed(std::string_view(buffer_).substr(0, filled_), name_);
  ended_ = filled_ == 0;  // and is not read again: a terminal would give more
  taken_ += filled_;
  if (taken_ > static_cast<uint64_t>(max_mb_) * 1'000'000)
    throw Error(fmt::format("{}: holds more than {} million bytes{}; give less at a time", name_, max_mb_,
                            is_packed_name(name_) ? " when decompressed" : ""));
  return ended_;
}

std::string_view TextReader::piece() {
  if (at_end()) return {};
  const size_t begin = std::exchange(at_, filled_);
  return std::string_view(buffer_).substr(begin, filled_ - begin);
}

bool TextReader::read_line(std::string& line, size_t most) {
  line.clear();
  while (!at_end()) {
    const std::string_view rest = waiting();
    const size_t end = rest.find('\n');
    line += rest.substr(0, end);
    if (line.size() > most) throw Error(fmt::format("{}: a line has more than {} bytes", name_, most));
    at_ += end == std::string_view::npos ? rest.size() : end + 1;
    had_line_end_ = end != std::string_view::npos;
    if (had_line_end_) return true;
  }
  return !line.empty();
}

std::string TextReader::read_rest() {
  std::string text;
  while (!at_end()) text += piece();
  return text;
}

bool TextReader::idle() const {
  return name_ == "stdin" && !ended_ && waiting().find('\n') == std::string_view::npos && wait_for_input(0) == 0;
}

std::string read_text_file(const std::string& path, int64_t max_mb) {
  std::string text = TextReader(path, max_mb).read_rest();
  if (text.empty()) throw empty_file(path);
  return text;
}

void check_is_text(std::string_view content, const std::string& file) {
  check_not_packed(content, file);
  if (const char* const encoding = wide_encoding(content))
    throw Error(
        fmt::format("{0}: is {1}, not UTF-8; convert it with iconv -f {1} -t UTF-8 {0} > NEW, or save it from Excel "
                    "as \"CSV UTF-8\"",
                    file, encoding));
}

void check_line_ends(std::string_view content, const std::string& file) {
  const std::string_view head = content.substr(0, block_size);
  const size_t first = head.find('\r');
  if (first == std::string_view::npos || first + 1 == content.size() || content.find('\n') < content.size()) return;
  throw Error(
      fmt::format("{0}: its lines end in CR alone, as on old Macs, so that all of it is one line; convert it: "
                  "tr '\\r' '\\n' < {0} > NEW",
                  file));
}

Error empty_file(const std::string& path) { return Error(fmt::format("{}: the file is empty", path)); }

bool is_packed_name(const std::string& path) { return is_gzip_name(path) || is_zstd_name(path); }

std::string unpacked_name(const std::string& path) {
  if (is_gzip_name(path)) return path.substr(0, path.size() - 3);
  return is_zstd_name(path) ? path.substr(0, path.size() - 4) : path;
}

bool looks_binary(const std::string& path) {
  try {
    return TextReader(path).piece().substr(0, 8192).find('\0') != std::string_view::npos;
  } catch (const NotTextError&) {
    return true;
  }
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
