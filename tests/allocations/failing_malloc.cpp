// A library for LD_PRELOAD that counts allocations and lets one, or all from one on, fail:
//   CAPSTAN_FAIL_ALLOCATION=n        the n-th allocation (from 1) is refused
//   CAPSTAN_FAIL_ALLOCATION=n+       the n-th and all later ones are refused
//   CAPSTAN_COUNT_ALLOCATIONS=FILE   the number of allocations is written to FILE when the process ends
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

}  // extern "C"

namespace {

struct Plan {
  long at = 0;
  bool all_later = false;
};

std::atomic<long> count{0};
Plan plan;

/// Allocations begin before any constructor of this library has run, so the plan is read at the first one.
const Plan& read_plan() {
  static std::atomic<bool> known{false};
  if (known.load(std::memory_order_acquire)) return plan;
  if (environ == nullptr) return plan;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    constexpr const char name[] = "CAPSTAN_FAIL_ALLOCATION=";
    if (std::strncmp(*entry, name, sizeof(name) - 1) != 0) continue;
    char* end = nullptr;
    plan.at = std::strtol(*entry + sizeof(name) - 1, &end, 10);
    plan.all_later = *end == '+';
  }
  known.store(true, std::memory_order_release);
  return plan;
}

bool refused() {
  const Plan& known = read_plan();
  const long number = count.fetch_add(1, std::memory_order_relaxed) + 1;
  if (known.at == 0 || (known.all_later ? number < known.at : number != known.at)) return false;
  errno = ENOMEM;
  return true;
}

struct Report {
  ~Report() {
    const char* const path = std::getenv("CAPSTAN_COUNT_ALLOCATIONS");
    if (path == nullptr) return;
    char text[32];
    const int length = std::snprintf(text, sizeof(text), "%ld\n", count.load());
    const int file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file >= 0 && ::write(file, text, static_cast<size_t>(length)) < 0) ::_exit(99);
    if (file >= 0) ::close(file);
  }
} const report;

}  // namespace

extern "C" {

void* malloc(size_t bytes) { return refused() ? nullptr : __libc_malloc(bytes); }
void* calloc(size_t items, size_t bytes) { return refused() ? nullptr : __libc_calloc(items, bytes); }
void* realloc(void* memory, size_t bytes) { return refused() ? nullptr : __libc_realloc(memory, bytes); }
void* memalign(size_t alignment, size_t bytes) { return refused() ? nullptr : __libc_memalign(alignment, bytes); }
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  *memory = memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}

}  // extern "C"
