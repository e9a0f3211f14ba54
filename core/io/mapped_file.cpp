#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/io/file.hpp"
#include "core/io/mapping_faults.hpp"
#include "core/io/regular_file.hpp"

namespace capstan {

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  const OpenedPath opened = open_for_reading(path_);
  if (opened.error_number != 0) throw_file_error("read", path_, opened.error_number);
  if (opened.kind != nullptr) throw Error(fmt::format("cannot read {}: it is {}, not a file", path_, opened.kind));
  size_ = static_cast<size_t>(opened.size);
  if (size_ > 0) {
    void* const memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, opened.descriptor, 0);
    const int map_error = errno;
    ::close(opened.descriptor);
    if (memory == MAP_FAILED) throw_file_error("read", path_, map_error);
    data_ = static_cast<const unsigned char*>(memory);
    note_mapping(data_, size_, path_.c_str());
  } else {
    ::close(opened.descriptor);
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
