#include "data/text_file.hpp"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "core/error.hpp"

namespace capstan {
namespace {

constexpr size_t block = 1 << 18;

bool is_gzip_name(const std::string& path) { return path.size() > 3 && path.compare(path.size() - 3, 3, ".gz") == 0; }

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
  void operator()(gzFile_s* file) const { gzclose_r(file); }
};

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
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (!file) throw Error(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  std::string text;
  while (text.size() < limit) {
    const size_t before = text.size(), wanted = std::min(block, limit - before);
    text.resize(before + wanted);
    const size_t got = std::fread(&text[before], 1, wanted, file.get());
    text.resize(before + got);
    if (got < wanted) {
      if (std::ferror(file.get())) throw Error(fmt::format("{}: reading failed: {}", path, std::strerror(errno)));
      break;
    }
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

std::string read_front(const std::string& path, size_t limit) {
  return is_gzip_name(path) ? read_gzip(path, limit) : read_plain(path, limit);
}

}  // namespace

std::string read_text_file(const std::string& path) {
  check_readable(path);
  std::string text = read_front(path, std::string::npos);
  if (text.empty()) throw Error(fmt::format("{}: the file is empty", path));
  return text;
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
