#include "train/runs/run_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "core/io/file.hpp"

namespace capstan {

RunFolder::RunFolder(std::filesystem::path folder) : folder_(std::move(folder)), checkpoints_(folder_ / "checkpoints") {
  make_folders(folder_.string());
  const std::string path = (folder_ / ".lock").string();
  lock_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0) throw_file_error("write", path, errno);
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    const bool held = errno == EWOULDBLOCK;
    ::close(lock_);
    // Some file systems have no locks; there the user must take care.
    if (held)
      throw Error(fmt::format("{}: another process is training in this folder: wait for it or choose another folder",
                              folder_.string()));
    lock_ = -1;
  }
  checkpoints_.recover();
}

RunFolder::~RunFolder() {
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace capstan
