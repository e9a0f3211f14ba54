#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/io/file.hpp"
#include "core/io/mapping_faults.hpp"

namespace capstan {

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  // Without O_NONBLOCK, opening a pipe would wait for a process that writes to it.
  const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) throw_file_error("read", path_, errno);
  struct stat status {};
  const bool known = ::fstat(descriptor, &status) == 0;
  const int error_number = errno;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    if (!known) throw_file_error("read", path_, error_number);
    throw Error(fmt::format("cannot read {}: it is not a file", path_));
  }
  size_ = static_cast<size_t>(status.st_size);
  if (size_ > 0) {
    void* const memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    const int map_error = errno;
    ::close(descriptor);
    if (memory == MAP_FAILED) throw_file_error("read", path_, map_error);
    data_ = static_cast<const unsigned char*>(memory);
    note_mapping(data_, size_, path_.c_str());
  } else {
    ::close(descriptor);
  }
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  forget_mapping(data_);
  ::munmap(const_cast<unsigned char*>(data_), size_);
}

void MappedFile::release(size_t begin, size_t end) const {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  begin -= begin % page;
  if (end < size_) end -= end % page;
  if (data_ != nullptr && begin < end) ::madvise(const_cast<unsigned char*>(data_) + begin, end - begin, MADV_DONTNEED);
}

void MappedFile::expect_jumps() const {
  if (data_ != nullptr) ::madvise(const_cast<unsigned char*>(data_), size_, MADV_RANDOM);
}

}  // namespace capstan
