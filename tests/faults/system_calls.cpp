#include "tests/faults/system_calls.hpp"

#include <sys/syscall.h>

namespace capstan::testing {

const std::vector<SystemCall>& system_calls() {
  using Names = SystemCall::Names;
  static const std::vector<SystemCall> list = {
      {"open", SYS_open, Names::path, {EIO, EMFILE, ENOSPC, EINTR}},
      {"openat", SYS_openat, Names::at, {EIO, EMFILE, ENOSPC, EINTR}},
      {"close", SYS_close, Names::descriptor, {EIO, EINTR, ENOSPC}},
      {"read", SYS_read, Names::descriptor, {EIO, EINTR}, 2},
      {"readv", SYS_readv, Names::descriptor, {EIO, EINTR}},
      {"pread64", SYS_pread64, Names::descriptor, {EIO, EINTR}, 2},
      {"write", SYS_write, Names::descriptor, {EIO, ENOSPC, EINTR}, 2},
      {"writev", SYS_writev, Names::descriptor, {EIO, ENOSPC, EINTR}, 2},
      {"pwrite64", SYS_pwrite64, Names::descriptor, {EIO, ENOSPC, EINTR}, 2},
      {"lseek", SYS_lseek, Names::descriptor, {EIO}},
      {"copy_file_range", SYS_copy_file_range, Names::descriptor, {EIO, ENOSPC}},
      {"sendfile", SYS_sendfile, Names::descriptor, {EIO, ENOSPC}, 3},
      {"fsync", SYS_fsync, Names::descriptor, {EIO, ENOSPC, EINTR}},
      {"fdatasync", SYS_fdatasync, Names::descriptor, {EIO, ENOSPC, EINTR}},
      {"truncate", SYS_truncate, Names::path, {EIO, EINTR}},
      {"ftruncate", SYS_ftruncate, Names::descriptor, {EIO, EINTR}},
      {"fallocate", SYS_fallocate, Names::descriptor, {EIO, ENOSPC}},
      {"rename", SYS_rename, Names::two_paths, {EIO, ENOSPC}},
      {"renameat", SYS_renameat, Names::two_at, {EIO, ENOSPC}},
      {"renameat2", SYS_renameat2, Names::two_at, {EIO, ENOSPC}},
      {"link", SYS_link, Names::two_paths, {EIO, ENOSPC}},
      {"linkat", SYS_linkat, Names::two_at, {EIO, ENOSPC}},
      {"symlink", SYS_symlink, Names::two_paths, {EIO, ENOSPC}},
      {"symlinkat", SYS_symlinkat, Names::link_at, {EIO, ENOSPC}},
      {"unlink", SYS_unlink, Names::path, {EIO}},
      {"unlinkat", SYS_unlinkat, Names::at, {EIO}},
      {"rmdir", SYS_rmdir, Names::path, {EIO}},
      {"mkdir", SYS_mkdir, Names::path, {EIO, ENOSPC}},
      {"mkdirat", SYS_mkdirat, Names::at, {EIO, ENOSPC}},
      {"stat", SYS_stat, Names::path, {EIO}},
      {"lstat", SYS_lstat, Names::path, {EIO}},
      {"fstat", SYS_fstat, Names::descriptor, {EIO}},
      {"newfstatat", SYS_newfstatat, Names::at, {EIO}},
      {"statx", SYS_statx, Names::at, {EIO}},
      {"access", SYS_access, Names::path, {EIO}},
      {"faccessat", SYS_faccessat, Names::at, {EIO}},
      {"faccessat2", SYS_faccessat2, Names::at, {EIO}},
      {"readlink", SYS_readlink, Names::path, {EIO}},
      {"readlinkat", SYS_readlinkat, Names::at, {EIO}},
      {"getdents64", SYS_getdents64, Names::descriptor, {EIO}},
      {"flock", SYS_flock, Names::descriptor, {EINTR, ENOLCK}},
      {"chmod", SYS_chmod, Names::path, {EIO}},
      {"fchmod", SYS_fchmod, Names::descriptor, {EIO}},
      {"mmap", SYS_mmap, Names::none, {ENOMEM}},
      {"mremap", SYS_mremap, Names::none, {ENOMEM}},
      {"mprotect", SYS_mprotect, Names::none, {ENOMEM}},
      {"madvise", SYS_madvise, Names::none, {ENOMEM, EIO}},
      {"clone", SYS_clone, Names::none, {EAGAIN}},
      {"clone3", SYS_clone3, Names::none, {EAGAIN}},
  };
  return list;
}

const SystemCall* find_system_call(long number) {
  for (const SystemCall& call : system_calls())
    if (call.number == number) return &call;
  return nullptr;
}

std::string error_name(int error_number) {
  const char* const name = strerrorname_np(error_number);
  return name != nullptr ? name : std::to_string(error_number);
}

}  // namespace capstan::testing
