// Files that must survive a kill or a full disk: every call is checked, and every failure is an Error with path, reason
// and remedy. Paths are plain strings.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace capstan {

/// A new file, written in pieces. A file that was not closed by close() may be incomplete.
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

/// A whole file, mapped into memory for reading.
class MappedFile {
 public:
  explicit MappedFile(std::string path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  const unsigned char* data() const { return data_; }
  size_t size() const { return size_; }

  /// Removes the pages of bytes [begin, end) from this process's memory;
  /// the next access reads them from the file again.
  void release(size_t begin, size_t end) const;
  /// Announces random access: nothing is read ahead.
  void expect_jumps() const;

 private:
  std::string path_;
  const unsigned char* data_ = nullptr;
  size_t size_ = 0;
};

/// The content of a file. Throws Error when it cannot be read or is not a regular file.
std::string read_file(const std::string& path);
/// Writes and syncs a file: its content is on the disk on return, and may be incomplete after a crash before that.
void write_file(const std::string& path, std::string_view content);
/// The same through `path`.tmp and a rename: after a crash the file has its old or its new content in full.
void replace_file(const std::string& path, std::string_view content);

/// Creates the folder and its parents; does nothing if it exists.
void make_folders(const std::string& path);
/// Returns when files created, renamed or removed in the folder are so on the disk, too.
void sync_folder(const std::string& path);
void rename_path(const std::string& from, const std::string& to);
/// Points the symbolic link `link` at `target` (a name relative to the link's folder), atomically:
/// the link exists at every moment.
void replace_link(const std::string& link, const std::string& target);
/// Removes a file, or a folder with its content; does nothing if it does not exist.
void remove_tree(const std::string& path);
/// Truncates the file to its first `size` bytes.
void truncate_file(const std::string& path, size_t size);

/// For tests: called before every call above that changes the file system ("write", "fsync", "rename", ...). It may
/// throw or end the process. An empty function removes it.
using FileHook = std::function<void(const char* call, const std::string& path)>;
void set_file_hook(FileHook hook);

/// Throws the Error for a failed call: "cannot <doing> <path>: <reason> (<remedy>)".
[[noreturn]] void throw_file_error(const char* doing, const std::string& path, int error_number);

}  // namespace capstan
