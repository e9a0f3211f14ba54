// Files that must survive a kill or a full disk: every call is checked, and every failure is an Error that names the
// path and the remedy. Paths are plain strings.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace capstan {

/// A new file, written in pieces. What is not closed by close() may be incomplete.
class FileWriter {
 public:
  enum class Mode { replace, append };
  explicit FileWriter(std::string path, Mode mode = Mode::replace);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(const void* bytes, size_t count);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Returns when the content is on the disk.
  void sync();
  void close();

 private:
  std::string path_;
  int descriptor_ = -1;
};

/// A whole file as it lies on the disk, mapped for reading.
class MappedFile {
 public:
  explicit MappedFile(std::string path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  const unsigned char* data() const { return data_; }
  size_t size() const { return size_; }

  /// Takes the pages of bytes [begin, end) out of this process's memory; who reads there again has them read again.
  void release(size_t begin, size_t end) const;
  /// Reading will jump about, so nothing is read in advance.
  void expect_jumps() const;

 private:
  std::string path_;
  const unsigned char* data_ = nullptr;
  size_t size_ = 0;
};

/// Creates the folder and those above it; nothing happens when it is there.
void make_folders(const std::string& path);
/// Returns when names created, renamed or removed in the folder are on the disk.
void sync_folder(const std::string& path);
void rename_path(const std::string& from, const std::string& to);
/// Points the symbolic link `link` at `target` (a name relative to the link's folder), atomically:
/// there is no moment without a link.
void replace_link(const std::string& link, const std::string& target);
/// Removes a file or a folder with all it holds; nothing happens when it is not there.
void remove_tree(const std::string& path);
/// Cuts the file to its first `size` bytes.
void truncate_file(const std::string& path, size_t size);

/// For tests: called before every call above that changes the file system ("write", "fsync", "rename", ...). It may
/// throw or end the process. An empty function takes it away.
using FileHook = std::function<void(const char* call, const std::string& path)>;
void set_file_hook(FileHook hook);

/// Throws the Error for a failed call: "cannot <doing> <path>: <reason> (<remedy>)".
[[noreturn]] void throw_file_error(const char* doing, const std::string& path, int error_number);

}  // namespace capstan
