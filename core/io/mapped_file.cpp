#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/io/file.hpp"
#include "core/io/mapping_faults.hpp"

namespace capstan {

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  const RegularFile file(path_);
  size_ = static_cast<size_t>(file.size());
  if (size_ == 0) return;
  void* const memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (memory == MAP_FAILED) throw_file_error("read", path_, errno);
  data_ = static_cast<const unsigned char*>(memory);
  note_mapping(data_, size_, path_.c_str());
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
