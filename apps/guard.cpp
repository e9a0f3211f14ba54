// The start of every program, before main(): an address space that is too small for OpenBLAS is an error here, where
// OpenBLAS would wait for ever. Also the end by std::terminate(), and an operator new that says how much was wanted.
// tests/cli/training/test_boundaries.cpp starts the program with little memory.
#include "apps/guard.hpp"

#include <execinfo.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "core/base/out_of_memory.hpp"
#include "core/products/blas_info.hpp"

// Sanitizers reserve terabytes of addresses and have an operator new of their own.
#if defined(__has_feature)  // Clang says so by features,
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CAPSTAN_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // and GCC by macros
#define CAPSTAN_SANITIZED 1
#endif
#ifndef CAPSTAN_SANITIZED
#define CAPSTAN_SANITIZED 0
#endif

namespace capstan {

void prepare_thread_ends() {
  void* frame = nullptr;
  ::backtrace(&frame, 1);  // loads the same unwinder as pthread_exit()
}

void print_error(const char* message) noexcept {
  for (const char* const part : {"error: ", message, "\n"})
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) return;
}

namespace {

[[noreturn]] void end_with(const char* message) {
  print_error(message);
  ::_exit(1);
}

[[noreturn]] void end_by_exception() {
  if (std::current_exception() == nullptr)  // no memory for an exception, or a thread was not joined
    end_with("cannot continue: out of memory, or an error in the program itself");
  try {
    throw;
  } catch (const std::exception& error) {
    end_with(error.what());
  } catch (...) {
    end_with("an unknown exception");
  }
}

#if !CAPSTAN_SANITIZED

/// The number after NAME= in the environment; 0 without it.
long environment_number(char** environment, const char* name) {
  const size_t length = std::strlen(name);
  for (; *environment != nullptr; ++environment)
    if (std::strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
      return std::strtol(*environment + length + 1, nullptr, 10);
  return 0;
}

/// The threads that OpenBLAS takes memory for when it starts: one for each processor of the machine, also where this
/// process may use fewer, or those of OpenMP, whose builds ignore OPENBLAS_NUM_THREADS.
size_t blas_threads(char** environment) {
  long threads = ::sysconf(_SC_NPROCESSORS_CONF);
  if (const long wanted = environment_number(environment, "OMP_NUM_THREADS"); wanted > 0)
    threads = std::min(threads, wanted);
  return static_cast<size_t>(std::max(threads, 1L));
}

#endif

}  // namespace

void guard_program(int, char**, char** environment) {
  std::set_terminate(end_by_exception);
  bound_openmp_waits(environment);
#if !CAPSTAN_SANITIZED
  constexpr size_t libraries = 32 << 20;  // what the start of all other libraries takes
  const size_t bytes = blas_threads(environment) * blas_thread_bytes + libraries;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) {
    ::munmap(memory, bytes);
    return;
  }
  end_with(OutOfMemory(bytes, "the start of OpenBLAS: raise ulimit -v, or set OMP_NUM_THREADS=1").what());
#endif
}

}  // namespace capstan

#if !CAPSTAN_SANITIZED

/// As in the standard library, but the exception says how much was wanted. The library's other forms of new, all but
/// the aligned ones, call this one.
void* operator new(std::size_t bytes) {
  for (;;) {
    if (void* const memory = std::malloc(std::max<std::size_t>(bytes, 1))) return memory;
    const std::new_handler make_room = std::get_new_handler();
    if (make_room == nullptr) throw capstan::OutOfMemory(bytes);
    make_room();
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

#endif
