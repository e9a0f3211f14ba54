#include "core/base/out_of_memory.hpp"

#include <sys/mman.h>

#include <cstdio>

namespace capstan {
namespace {

thread_local const char* current_purpose = nullptr;

}  // namespace

OutOfMemory::OutOfMemory(size_t bytes, const char* purpose) noexcept {
  if (purpose == nullptr) purpose = current_purpose;
  const size_t megabyte = 1000000;
  const bool many = bytes >= megabyte;
  std::snprintf(text_, sizeof(text_), "out of memory (wanted %zu %s%s%s)", many ? bytes / megabyte : bytes,
                many ? "MB" : "bytes", purpose != nullptr ? " for " : "", purpose != nullptr ? purpose : "");
}

void check_available(size_t bytes, const char* purpose) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw OutOfMemory(bytes, purpose);
  ::munmap(memory, bytes);
}

MemoryFor::MemoryFor(const char* purpose) noexcept : outer_(current_purpose) { current_purpose = purpose; }
MemoryFor::~MemoryFor() { current_purpose = outer_; }

}  // namespace capstan
