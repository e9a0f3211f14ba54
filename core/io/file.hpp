// Files that must survive a kill, a full disk or a power loss: every call is checked, and every failure is an Error
// with path, reason and remedy. Paths are plain strings.
//
// Whatever the program writes is written through this header, by one rule: only regular files are written or replaced,
// never what a symbolic link leads to, a pipe or a device; and a name appears when its content is on the disk (fsync of
// the file, rename, fsync of its folder). tests/rooms/test_writers.cpp holds that no other room writes files,
// tests/core/io/test_file.cpp and tests/faults/ that the rule is kept at every failing call, kill and power loss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/no_copy.hpp"
#include "core/io/regular_file.hpp"

namespace capstan {

/// A new file, written in pieces. A file that was not closed by close() may be incomplete.
/// Throws Error when something other than a regular file has the name.
class FileWriter : NoCopy {
 public:
  enum class Mode { replace, append, update };  // update: of a file that exists, by write_at()
  explicit FileWriter(std::string path, Mode mode = Mode::replace);
  ~FileWriter();

  void write(const void* bytes, size_t count);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Writes from byte `place` on.
  void write_at(size_t place, const void* bytes, size_t count);
  /// Syncs the file: returns when its content is on the disk.
  void sync();
  void close();

 private:
  /// call(bytes, count): writes a part of them, as write(2).
  template <class Call>
  void write_all(const void* bytes, size_t count, const Call& call);

  std::string path_;
  int descriptor_ = -1;
};

/// A lock that one process holds at a time; released by the system, however the process ends. The file stays.
class FileLock : NoCopy {
 public:
  /// Creates the file if there is none. Throws Error.
  explicit FileLock(const std::string& path);
  ~FileLock();

  /// False when another process holds the lock. Some file systems have no locks; there the result is true, and the
  /// user must take care.
  bool try_lock();
  /// Waits for it by asking every 100 ms: a process that slept in one call would show the other ranks of a run no sign
  /// of life (train/ranks/communicator.cpp).
  void lock();

 private:
  int descriptor_ = -1;
};

/// Opens a file that belongs to the program for writing: `flags` as for open(2). Throws Error unless it is a regular
/// file, without waiting (a pipe) and without following a symbolic link. Returns the descriptor.
int open_own_file(const std::string& path, int flags);
/// Throws Error unless `path` is a regular file or nothing at all: only these are written or replaced.
void check_replaceable(const std::string& path);

/// The content of a file. Throws Error when it cannot be read or is not a regular file.
std::string read_file(const std::string& path);
enum class Sync { now, later };  // later: sync_file() is called when the content must be on the disk
/// Writes and, unless that is for later, syncs a file: its content is then on the disk on return, and may be incomplete
/// after a crash before that.
void write_file(const std::string& path, std::string_view content, Sync sync = Sync::now);
/// Returns when the content of a file that was written before is on the disk.
void sync_file(const std::string& path);
/// Renames a finished file, whose content must be on the disk, to `path`. On return the name is on the disk, too.
void publish_file(const std::string& unfinished, const std::string& path);
/// Writes a file under a name of its own and publishes it: after a crash the file has its old or its new content in
/// full, also when several processes replace it.
void replace_file(const std::string& path, std::string_view content);
/// replace_file() with a function that writes and syncs the file it is given.
void replace_file(const std::string& path, const std::function<void(const std::string& unfinished)>& write);
/// Removes what killed calls of replace_file() have left in a folder. No other process may write there.
void remove_unfinished(const std::string& folder);

/// The folder for temporary files: TMPDIR, or /tmp. Throws Error that names it and the variable where there is none.
std::string temporary_folder();

/// The names in a folder, sorted; none where there is no such folder. Throws FileError unless all can be read.
std::vector<std::string> names_in_folder(const std::string& path);
/// Bytes of a file, or of all files in a folder and those below it; 0 where there is nothing. Links are not followed.
int64_t bytes_below(const std::string& path);
/// Creates the folder and its parents; does nothing if it exists. On return their names are on the disk.
void make_folders(const std::string& path);
/// Returns when files created, renamed or removed in the folder are so on the disk, too.
void sync_folder(const std::string& path);
/// For folders, and for files whose folder is synced later; publish_file() is for all others.
void rename_path(const std::string& from, const std::string& to);
/// `given` without a slash at its end. Throws Error unless nothing is there, or an empty folder.
std::string new_folder(const std::string& given);
/// Makes a new_folder(), whole or not at all: `write` fills one of another name beside it, which is then renamed. What
/// a killed call has left is removed.
void write_new_folder(const std::string& folder, const std::function<void(const std::string& unfinished)>& write);
/// Removes a file, or a folder with its content; does nothing if it does not exist.
void remove_tree(const std::string& path);
/// Cuts the file to its first `size` bytes; a shorter one is filled up with zeros.
void truncate_file(const std::string& path, size_t size);

/// For tests: called before every call above that changes the file system ("write", "fsync", "rename", ...). It may
/// throw or end the process. An empty function removes it.
using FileHook = std::function<void(const char* call, const std::string& path)>;
void set_file_hook(FileHook hook);

/// Throws the FileError for a failed call: "cannot <doing> <path>: <reason> (<remedy>)".
[[noreturn]] void throw_file_error(const char* doing, const std::string& path, int error_number);

}  // namespace capstan
