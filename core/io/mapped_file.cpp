// Mapped files. Access to a mapped file that became shorter raises SIGBUS. The handler looks the address up in a table
// of mappings, writes a message that names the file and ends the process; it may only do what is safe in a handler: no
// locks, no memory. "a mapped file that another process shortens" in tests/core/io/test_file.cpp.
#include "core/io/mapped_file.hpp"

#include "core/io/file.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <utility>

namespace capstan {
namespace {

// The handler may only read memory that is never freed, without locks: a fixed table. A mapping beyond it is read like
// any other; a fault in it ends the process by SIGBUS.
constexpr size_t max_mappings = 4096;

/// A mapped file in the table. Filled and read without locks: an entry is free while `begin` is null.
struct Mapping {
  std::atomic<const unsigned char*> begin{nullptr};
  std::atomic<size_t> size{0};  // 0: being filled
  std::atomic<const char*> path{nullptr};
};

std::array<Mapping, max_mappings> mappings;

std::atomic<int> fault_log{-1};

static_assert(std::atomic<const unsigned char*>::is_always_lock_free && std::atomic<size_t>::is_always_lock_free);

/// Text of a fixed size, put together without allocating.
class FaultMessage {
 public:
  void add(const char* text) {
    for (; *text != '\0' && size_ < sizeof(text_); ++text) {
      const auto byte = static_cast<unsigned char>(*text);
      const bool control = (byte < 0x20 && byte != '\n') || byte == 0x7f;
      text_[size_++] = control ? '?' : *text;
    }
  }
  void write_to(int descriptor) const {
    if (descriptor < 0) return;
    const char* next = text_;
    for (size_t left = size_; left > 0;) {
      const ssize_t written = ::write(descriptor, next, left);
      if (written <= 0) return;
      next += written;
      left -= static_cast<size_t>(written);
    }
  }

 private:
  char text_[8192];
  size_t size_ = 0;
};

/// The path of the mapped file that an address belongs to; null for any other address.
const char* path_at(const unsigned char* address) {
  for (const Mapping& mapping : mappings) {
    const unsigned char* const begin = mapping.begin;
    if (begin != nullptr && address >= begin && address < begin + mapping.size) return mapping.path;
  }
  return nullptr;
}

extern "C" void end_by_mapping_fault(int number, siginfo_t* info, void*) {
  const char* const path = path_at(static_cast<const unsigned char*>(info->si_addr));
  if (path == nullptr) {  // a fault of another kind: it happens again, and ends the process as it would have
    ::signal(number, SIG_DFL);
    return;
  }
  FaultMessage message;
  message.add("error: ");
  message.add(path);
  message.add(
      ": a part of this file can no longer be read: another program has shortened it, or its disk fails; restore the "
      "file and run the same command again (checkpoints are intact)\n");
  message.write_to(STDERR_FILENO);
  message.write_to(fault_log);
  ::_exit(1);
}

}  // namespace

void catch_mapping_faults() {
  struct sigaction action {};
  action.sa_sigaction = end_by_mapping_fault;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

void set_fault_log(int descriptor) { fault_log = descriptor; }

void note_mapping(const unsigned char* begin, size_t size, const char* path) {
  for (Mapping& mapping : mappings) {
    const unsigned char* none = nullptr;
    if (!mapping.begin.compare_exchange_strong(none, begin)) continue;
    mapping.path = path;
    mapping.size = size;
    return;
  }
}

void forget_mapping(const unsigned char* begin) {
  for (Mapping& mapping : mappings) {
    if (mapping.begin != begin) continue;
    mapping.size = 0;
    mapping.begin = nullptr;
    return;
  }
}

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  const RegularFile file(path_);
  size_ = static_cast<size_t>(file.size());
  map(file.descriptor());
}

MappedFile::MappedFile(int descriptor, size_t size, std::string path) : path_(std::move(path)), size_(size) {
  map(descriptor);
}

void MappedFile::map(int descriptor) {
  if (size_ == 0) return;
  void* const memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
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

}  // namespace capstan
