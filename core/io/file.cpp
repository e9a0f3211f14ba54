// Files that survive a kill or power loss. Functions that write, rename or remove first call the hook of tests
// (before), which may fail or end the process at exactly this call. Errors of the system become FileError with a remedy
// (throw_file_error). tests/core/io/test_file.cpp.
#include "core/io/file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace capstan {
namespace {

FileHook& file_hook() {
  static FileHook hook;
  return hook;
}

/// Tells the hook of a test which call comes next.
void before(const char* call, const std::string& path) {
  if (file_hook()) file_hook()(call, path);
}

/// What the user can do about an error of the system.
const char* remedy(std::string_view doing, int error_number) {
  const bool refused = error_number == EACCES || error_number == EPERM;
  if (refused && (doing == "read" || doing == "list")) return "change its permissions, or run as a user who may";
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "free some space, or choose a folder on another disk; what was saved before is intact";
    case EFBIG:
      return "the file would be larger than `ulimit -f` or its file system allows: raise the limit";
    case EROFS:
    case EACCES:
    case EPERM:
      return "choose a folder you may write to, or change its permissions";
    case ENOTDIR:
    case EEXIST:
      return "a part of this path is a file: choose another folder";
    case ENOENT:
      return "check the path";
    case EFAULT:
      return "a file that was being copied became shorter: run again when it is complete";
    default:
      return "check the disk and the path";
  }
}

/// The folder that holds `path`.
std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

[[noreturn]] void throw_irregular(const std::string& path, const std::string& kind) {
  throw Error(
      fmt::format("cannot write {}: it is {}, and only a regular file is written or replaced; remove it, or "
                  "choose another path",
                  path, kind));
}

constexpr size_t number_digits = 20;  // of the number in the name of an unfinished file

/// Is it a name that replace_file() writes under: NAME.NUMBER.tmp, with 20 digits? No user has such names.
bool is_unfinished_name(const std::string& name) {
  constexpr std::string_view ending = ".tmp";
  if (name.size() <= ending.size() || name.substr(name.size() - ending.size()) != ending) return false;
  const std::string rest = name.substr(0, name.size() - ending.size());
  const size_t dot = rest.rfind('.');
  return dot != std::string::npos && dot > 0 && dot + 1 + number_digits == rest.size() &&
         rest.find_first_not_of("0123456789", dot + 1) == std::string::npos;
}

/// Makes an empty file under a new random name, so no other process can have written into it.
std::string new_file_beside(const std::string& path) {
  std::random_device random;
  for (int attempt = 0;; ++attempt) {
    const std::string name = fmt::format("{}.{:0{}}.tmp", path, uint64_t{random()} << 32 | random(), number_digits);
    before("create", name);
    const int descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor >= 0) {
      ::close(descriptor);
      return name;
    }
    if (errno != EEXIST || attempt == 10) throw_file_error("create", name, errno);
  }
}

}  // namespace

void set_file_hook(FileHook hook) { file_hook() = std::move(hook); }

void throw_file_error(const char* doing, const std::string& path, int error_number) {
  throw FileError(
      fmt::format("cannot {} {}: {} ({})", doing, path, std::strerror(error_number), remedy(doing, error_number)),
      error_number);
}

FileWriter::FileWriter(std::string path, Mode mode) : path_(std::move(path)) {
  before("open", path_);
  const int flags = mode == Mode::append ? O_CREAT | O_APPEND : mode == Mode::replace ? O_CREAT | O_TRUNC : 0;
  descriptor_ = open_own_file(path_, O_WRONLY | flags);
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

template <class Call>
void FileWriter::write_all(const void* bytes, size_t count, const Call& call) {
  before("write", path_);
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = call(next, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_file_error("write", path_, errno);
    next += written;
    count -= static_cast<size_t>(written);
  }
}

void FileWriter::write(const void* bytes, size_t count) {
  write_all(bytes, count, [&](const char* next, size_t left) { return ::write(descriptor_, next, left); });
}

void FileWriter::write_at(size_t place, const void* bytes, size_t count) {
  const char* const first = static_cast<const char*>(bytes);
  write_all(bytes, count, [&](const char* next, size_t left) {
    return ::pwrite(descriptor_, next, left, static_cast<off_t>(place) + (next - first));
  });
}

void FileWriter::sync() {
  before("fsync", path_);
  if (::fsync(descriptor_) != 0) throw_file_error("write", path_, errno);
}

void FileWriter::close() {
  before("close", path_);
  if (::close(std::exchange(descriptor_, -1)) != 0) throw_file_error("write", path_, errno);
}

FileLock::FileLock(const std::string& path) : descriptor_(open_own_file(path, O_RDWR | O_CREAT)) {}

FileLock::~FileLock() { ::close(descriptor_); }

bool FileLock::try_lock() { return ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

void FileLock::lock() {
  while (!try_lock()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

int open_own_file(const std::string& path, int flags) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0666);
  const int open_error = errno;
  if (descriptor < 0) {
    check_replaceable(path);
    throw_file_error((flags & O_CREAT) != 0 ? "create" : "open", path, open_error);
  }
  struct stat status {};
  const bool known = ::fstat(descriptor, &status) == 0;
  const int status_error = errno;
  if (known && S_ISREG(status.st_mode)) return descriptor;
  ::close(descriptor);
  if (!known) throw_file_error("open", path, status_error);
  throw_irregular(path, kind_name(status.st_mode));
}

void check_replaceable(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) throw_irregular(path, kind_name(status.st_mode));
  if (::lstat(folder_of(path).c_str(), &status) != 0) throw_file_error("create", path, errno);
}

std::string read_file(const std::string& path) {
  RegularFile file(path);
  // The buffer has a spare byte: a read that leaves it empty has reached the end.
  std::string content(static_cast<size_t>(file.size()) + 1, '\0');
  size_t size = file.read(content.data(), content.size());
  while (size == content.size()) {  // the file has grown
    content.resize(2 * size);
    size += file.read(content.data() + size, size);
  }
  content.resize(size);
  return content;
}

void write_file(const std::string& path, std::string_view content, Sync sync) {
  FileWriter file(path);
  file.write(content);
  if (sync == Sync::now) file.sync();
  file.close();
}

void sync_file(const std::string& path) {
  FileWriter file(path, FileWriter::Mode::update);
  file.sync();
  file.close();
}

void publish_file(const std::string& unfinished, const std::string& path) {
  check_replaceable(path);
  rename_path(unfinished, path);
  sync_folder(folder_of(path));
}

void replace_file(const std::string& path, std::string_view content) {
  replace_file(path, [&](const std::string& unfinished) { write_file(unfinished, content); });
}

void replace_file(const std::string& path, const std::function<void(const std::string&)>& write) {
  check_replaceable(path);  // before the work
  const std::string unfinished = new_file_beside(path);
  try {
    write(unfinished);
    publish_file(unfinished, path);
  } catch (...) {
    ::unlink(unfinished.c_str());
    throw;
  }
}

void remove_unfinished(const std::string& folder) {
  for (const std::string& name : names_in_folder(folder)) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    if (is_unfinished_name(name) && std::filesystem::is_regular_file(std::filesystem::symlink_status(path)))
      remove_tree(path.string());
  }
}

std::string temporary_folder() {
  std::error_code error;
  const std::filesystem::path found = std::filesystem::temp_directory_path(error);
  if (!error) return found.string();
  for (const char* const name : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"})  // in the order in which the library asks
    if (const char* const path = std::getenv(name); path != nullptr)
      throw Error(
          fmt::format("{}: {} of the environment names this for temporary files, but there is no such folder: "
                      "make it, or set TMPDIR to another",
                      path, name));
  throw Error("/tmp: there is no such folder for temporary files: make it, or set TMPDIR to another");
}

std::vector<std::string> names_in_folder(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error && error.value() != ENOENT && error.value() != ENOTDIR) throw_file_error("list", path, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

int64_t bytes_below(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;  // not thrown: a file that another process removes meanwhile counts as 0 bytes
  const fs::file_status status = fs::symlink_status(path, error);
  if (fs::is_regular_file(status)) {
    const auto size = fs::file_size(path, error);
    return error ? 0 : static_cast<int64_t>(size);
  }
  int64_t bytes = 0;
  if (fs::is_directory(status))
    for (const std::string& name : names_in_folder(path)) bytes += bytes_below((fs::path(path) / name).string());
  return bytes;
}

void make_folders(const std::string& path) {
  before("mkdir", path);
  std::error_code error;
  std::vector<std::string> created;
  for (std::filesystem::path folder = path; !folder.empty() && !std::filesystem::exists(folder, error);
       folder = folder.parent_path())
    created.push_back(folder.string());
  std::filesystem::create_directories(path, error);
  if (error) throw_file_error("create the folder", path, error.value());
  if (!std::filesystem::is_directory(path)) throw_file_error("create the folder", path, ENOTDIR);
  for (const std::string& folder : created) sync_folder(folder_of(folder));
}

void sync_folder(const std::string& path) {
  before("fsync folder", path);
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw_file_error("open the folder", path, errno);
  const int result = ::fsync(descriptor);
  const int error_number = errno;
  ::close(descriptor);
  // Some file systems cannot sync a folder and need not.
  if (result != 0 && error_number != EINVAL) throw_file_error("write the folder", path, error_number);
}

void rename_path(const std::string& from, const std::string& to) {
  before("rename", to);
  if (::rename(from.c_str(), to.c_str()) != 0) throw_file_error("rename to", to, errno);
}

std::string new_folder(const std::string& given) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(given).has_filename() ? fs::path(given) : fs::path(given).parent_path();
  const fs::file_status status = fs::symlink_status(folder);
  if (fs::exists(status) && !(fs::is_directory(status) && fs::is_empty(folder)))
    throw Error(fmt::format("{}: is there already, and is no empty folder: give another one", folder.string()));
  return folder.string();
}

void write_new_folder(const std::string& folder, const std::function<void(const std::string& unfinished)>& write) {
  const std::filesystem::path path = new_folder(folder);
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  const std::string unfinished = (parent / (".unfinished-" + path.filename().string())).string();
  remove_tree(unfinished);
  try {
    make_folders(unfinished);
    write(unfinished);
    sync_folder(unfinished);
    rename_path(unfinished, path.string());
  } catch (...) {
    remove_tree(unfinished);
    throw;
  }
  sync_folder(parent.string());
}

void remove_tree(const std::string& path) {
  before("remove", path);
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error && error.value() != ENOENT) throw_file_error("remove", path, error.value());
}

void truncate_file(const std::string& path, size_t size) {
  before("truncate", path);
  const int descriptor = open_own_file(path, O_WRONLY);
  const int result = ::ftruncate(descriptor, static_cast<off_t>(size));
  const int error_number = errno;
  ::close(descriptor);
  if (result != 0) throw_file_error("shorten", path, error_number);
}

}  // namespace capstan
