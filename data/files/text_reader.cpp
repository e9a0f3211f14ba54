#include "data/files/text_reader.hpp"

#include <poll.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"
#include "core/io/regular_file.hpp"
#include "core/strings/affixes.hpp"

namespace capstan {
namespace {

constexpr size_t block_size = 1 << 16;

/// What a file may make this program reserve for its window: as much as the zstd program reads without being asked for more.
constexpr int zstd_window_log = 27;

bool is_gzip_name(const std::string& path) { return path != ".gz" && ends_with(path, ".gz"); }
bool is_zstd_name(const std::string& path) { return path != ".zst" && ends_with(path, ".zst"); }

}  // namespace

/// Where the bytes of a text come from.
class TextReader::Bytes {
 public:
  virtual ~Bytes() = default;
  /// As TextReader::read().
  virtual size_t read(char* to, size_t size) = 0;
  /// Would read() wait?
  virtual bool idle() const { return false; }
};

class TextReader::StandardInput final : public Bytes {
 public:
  size_t read(char* to, size_t size) override {
    for (;;) {
      const ssize_t got = ::read(STDIN_FILENO, to, size);
      if (got >= 0) return static_cast<size_t>(got);
      if (errno == EAGAIN)  // another program that has the same terminal may have made it so
        wait(-1);
      else if (errno != EINTR)
        throw Error(fmt::format("stdin: reading failed: {}", std::strerror(errno)));
    }
  }
  bool idle() const override { return wait(0) == 0; }

 private:
  static int wait(int milliseconds) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    return ::poll(&input, 1, milliseconds);
  }
};

class TextReader::PlainFile final : public Bytes {
 public:
  explicit PlainFile(RegularFile file) : file_(std::move(file)) {}
  size_t read(char* to, size_t size) override { return file_.read(to, size); }

 private:
  RegularFile file_;
};

class TextReader::PackedFile : public Bytes {
 protected:
  explicit PackedFile(RegularFile file)
      : file_(std::move(file)), packed_(std::clamp<size_t>(file_.size() + 1, 4096, block_size), '\0') {}
  /// The next piece of the file; empty at its end, which `truncated` says must not be yet.
  std::string_view piece(const char* kind, bool truncated) {
    const size_t got = file_.read(packed_.data(), packed_.size());
    if (got == 0 && truncated) fail(fmt::format("the {} file is truncated; copy or compress it again", kind));
    return {packed_.data(), got};
  }
  [[noreturn]] void fail(const std::string& what) const { throw Error(fmt::format("{}: {}", file_.path(), what)); }

 private:
  RegularFile file_;
  std::string packed_;
};

/// The file may hold several members, and zeros after them.
class TextReader::GzipFile final : public PackedFile {
 public:
  explicit GzipFile(RegularFile file) : PackedFile(std::move(file)) {
    if (inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~GzipFile() override { inflateEnd(&stream_); }

  size_t read(char* to, size_t size) override {
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
      // Text in front of the damage is given out first: the state stays.
      const std::string reason = stream_.msg != nullptr ? stream_.msg : zError(state);
      if (!had_member_ && reason == "incorrect header check")
        fail("is not a gzip file; remove .gz from its name if it is plain text");
      fail(fmt::format("damaged gzip file ({})", reason));
    }
  }

  z_stream stream_{};
  bool in_member_ = false, had_member_ = false;
};

/// The file may hold several frames.
class TextReader::ZstdFile final : public PackedFile {
 public:
  explicit ZstdFile(RegularFile file) : PackedFile(std::move(file)), stream_(ZSTD_createDStream()) {
    if (!stream_) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, zstd_window_log);
  }

  size_t read(char* to, size_t size) override {
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

TextReader::TextReader(std::string name, std::unique_ptr<Bytes> bytes)
    : name_(std::move(name)), bytes_(std::move(bytes)), most_(std::numeric_limits<uint64_t>::max()) {}

TextReader::TextReader(const std::string& path, const char* remedy) : TextReader(path, std::unique_ptr<Bytes>()) {
  RegularFile file(path, remedy);
  if (is_gzip_name(path))
    bytes_ = std::make_unique<GzipFile>(std::move(file));
  else if (is_zstd_name(path))
    bytes_ = std::make_unique<ZstdFile>(std::move(file));
  else
    bytes_ = std::make_unique<PlainFile>(std::move(file));
}

TextReader TextReader::input(const std::string& file) {
  if (file == "-") return {"stdin", std::make_unique<StandardInput>()};
  TextReader reader(file, "give a file, or - for standard input");
  if (reader.at_end()) throw empty_file(file);
  return reader;
}

TextReader::~TextReader() = default;
TextReader::TextReader(TextReader&& other) noexcept = default;

void TextReader::limit(int64_t max_mb) {
  most_ = static_cast<uint64_t>(std::clamp<int64_t>(max_mb, 0, int64_t{1} << 40)) * 1'000'000;
}

/// After the end, it is not read again: a terminal would give more.
size_t TextReader::next(char* to, size_t size) {
  const size_t got = ended_ ? 0 : bytes_->read(to, size);
  ended_ = got == 0;
  taken_ += got;
  if (taken_ > most_)
    throw Error(
        fmt::format("{}: holds more than {} million bytes{}; give less at a time, or raise data.max_file_mb if "
                    "the file is named under data",
                    name_, most_ / 1'000'000, is_packed_name(name_) ? " when decompressed" : ""));
  return got;
}

bool TextReader::at_end() {
  if (at_ < filled_) return false;
  buffer_.resize(block_size);
  at_ = 0;
  filled_ = next(buffer_.data(), buffer_.size());
  return filled_ == 0;
}

size_t TextReader::read(char* to, size_t size) {
  if (at_ == filled_) return next(to, size);
  const size_t count = std::min(size, filled_ - at_);
  std::memcpy(to, buffer_.data() + at_, count);
  at_ += count;
  return count;
}

bool TextReader::read_line(std::string& line, size_t most) {
  line.clear();
  while (!at_end()) {
    const std::string_view rest(buffer_.data() + at_, filled_ - at_);
    const size_t end = rest.find('\n');
    line += rest.substr(0, end);
    if (line.size() > most) throw Error(fmt::format("{}: a line has more than {} bytes", name_, most));
    at_ += end == std::string_view::npos ? rest.size() : end + 1;
    if (end != std::string_view::npos) return true;
  }
  return !line.empty();
}

std::string TextReader::read_rest() {
  std::string text;
  while (!at_end()) {
    text.append(buffer_, at_, filled_ - at_);
    at_ = filled_;
  }
  return text;
}

bool TextReader::idle() const {
  const std::string_view rest(buffer_.data() + at_, filled_ - at_);
  return rest.find('\n') == std::string_view::npos && !ended_ && bytes_->idle();
}

Error empty_file(const std::string& path) { return Error(fmt::format("{}: the file is empty", path)); }

bool is_packed_name(const std::string& path) { return is_gzip_name(path) || is_zstd_name(path); }

std::string unpacked_name(const std::string& path) {
  if (is_gzip_name(path)) return path.substr(0, path.size() - 3);
  return is_zstd_name(path) ? path.substr(0, path.size() - 4) : path;
}

}  // namespace capstan
