#include "tests/faults/disk_recorder.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <cstring>
#include <fstream>
#include <stdexcept>

namespace capstan::testing {
namespace fs = std::filesystem;
namespace {

/// Without links in the folders that lead to it.
std::string resolved(const std::string& path) {
  const fs::path whole = fs::path(path).lexically_normal();
  std::error_code error;
  const fs::path folder = fs::canonical(whole.parent_path(), error);
  return error ? whole.string() : (folder / whole.filename()).string();
}

std::string process_file(const CallStop& stop, const std::string& kind, uint64_t descriptor) {
  return "/proc/" + std::to_string(stop.process) + "/" + kind + "/" + std::to_string(static_cast<int>(descriptor));
}

/// Where the next byte of the descriptor goes.
uint64_t position(const CallStop& stop, uint64_t descriptor) {
  std::ifstream file(process_file(stop, "fdinfo", descriptor));
  std::string key;
  uint64_t value = 0;
  file >> key >> value;
  if (key != "pos:") throw std::runtime_error("/proc has no position of a descriptor");
  return value;
}

std::string vector_bytes(const CallStop& stop) {
  const size_t count = stop.arguments[2];
  const std::string raw = stop.bytes(stop.arguments[1], count * sizeof(iovec));
  std::vector<iovec> parts(count);
  std::memcpy(parts.data(), raw.data(), raw.size());
  std::string bytes;
  for (const iovec& part : parts) bytes += stop.bytes(reinterpret_cast<uint64_t>(part.iov_base), part.iov_len);
  bytes.resize(static_cast<size_t>(stop.result));
  return bytes;
}

}  // namespace

Verdict DiskRecorder::before(const CallStop&) { return {}; }

void DiskRecorder::opened(const CallStop& stop, uint64_t flags) {
  std::error_code error;
  const std::string path =
      fs::read_symlink(process_file(stop, "fd", static_cast<uint64_t>(stop.result)), error).string();
  if (error || !log_.holds(path)) return;
  if ((flags & O_TMPFILE) == O_TMPFILE) unknown_ += "O_TMPFILE " + path + "\n";
  if (!log_.knows(path)) return log_.create_file(path);
  if ((flags & O_TRUNC) != 0) log_.truncate(path, 0);
}

void DiskRecorder::wrote(const CallStop&, const std::string& path, uint64_t offset, const std::string& bytes) {
  if (log_.knows(path)) log_.write(path, offset, bytes);
}

void DiskRecorder::changed_names(const CallStop& stop) {
  const std::string path = resolved(stop.path), second = resolved(stop.second_path);
  switch (stop.call->number) {
    case SYS_mkdir:
    case SYS_mkdirat:
      if (log_.holds(path)) log_.create_folder(path);
      return;
    case SYS_symlink:
    case SYS_symlinkat:
      if (log_.holds(second)) log_.create_link(second, stop.path);
      return;
    case SYS_unlink:
    case SYS_unlinkat:
    case SYS_rmdir:
      if (log_.knows(path)) log_.remove(path);
      return;
    case SYS_rename:
    case SYS_renameat:
    case SYS_renameat2:
      if (log_.knows(path)) log_.rename(path, second);
      return;
    default:
      if (log_.holds(second)) unknown_ += stop.call->name + " " + second + "\n";
  }
}

void DiskRecorder::changed_data(const CallStop& stop) {
  const uint64_t* const a = stop.arguments;
  const auto count = static_cast<size_t>(stop.result);
  switch (stop.call->number) {
    case SYS_write:
      return wrote(stop, stop.path, position(stop, a[0]) - count, stop.bytes(a[1], count));
    case SYS_writev:
      return wrote(stop, stop.path, position(stop, a[0]) - count, vector_bytes(stop));
    case SYS_pwrite64:
      return wrote(stop, stop.path, a[3], stop.bytes(a[1], count));
    case SYS_truncate:
    case SYS_ftruncate:
      return log_.truncate(stop.call->number == SYS_truncate ? resolved(stop.path) : stop.path, a[1]);
    case SYS_fsync:
    case SYS_fdatasync:
      return log_.sync(stop.path);
    case SYS_mmap:
      if ((a[3] & MAP_SHARED) == 0 || (a[2] & PROT_WRITE) == 0) return;
      break;
    case SYS_fallocate:
      break;
    default:
      return;
  }
  unknown_ += stop.call->name + " " + stop.path + "\n";
}

void DiskRecorder::after(const CallStop& stop) {
  if (stop.result < 0) return;
  const uint64_t* const a = stop.arguments;
  switch (stop.call->number) {
    case SYS_open:
      return opened(stop, a[1]);
    case SYS_openat:
      return opened(stop, a[2]);
    case SYS_copy_file_range:
    case SYS_sendfile:
      unknown_ += stop.call->name + "\n";
      return;
    default:
      break;
  }
  if (stop.call->names == SystemCall::Names::descriptor || stop.call->names == SystemCall::Names::none ||
      stop.call->number == SYS_truncate) {
    if (log_.knows(stop.path)) changed_data(stop);
  } else {
    changed_names(stop);
  }
}

}  // namespace capstan::testing
