#include <execinfo.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>

#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/products/blas_info.hpp"

namespace {

// The last resort of the program: what no other place has caught ends it with a message and exit code 1, also without
// memory, in a function that must not throw, and before main().
/// Before any other code of the program and its libraries (.preinit_array): makes std::terminate() print the exception
/// and end the program with exit code 1; ends it if the address space is too small for OpenBLAS, which would wait for
/// ever.
void guard_program(int argc, char** argv, char** environment);

/// Loads what the end of a thread needs. The C library would load it then, and abort if it gets no memory.
void prepare_thread_ends();

/// "error: <message>" on standard error, without taking memory.
void print_error(const char* message) noexcept;

#if defined(__has_feature)  // clang's way to say it
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CAPSTAN_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // GCC's
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

[[noreturn]] void end_by_exception() {
  if (std::current_exception() == nullptr) {  // no memory for an exception, or a thread was not joined
    print_error("cannot continue: out of memory, or an error in the program itself");
    ::_exit(1);
  }
  try {
    throw;
  } catch (const std::exception& error) {
    print_error(error.what());
  } catch (...) {
    print_error("an unknown exception");
  }
  ::_exit(1);
}

#if !CAPSTAN_SANITIZED

/// The number behind NAME= in the environment; 0 without it.
long setting(char** environment, const char* name) {
  const size_t length = std::strlen(name);
  for (; *environment != nullptr; ++environment)
    if (std::strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
      return std::strtol(*environment + length + 1, nullptr, 10);
  return 0;
}

/// The threads that OpenBLAS starts with.
size_t blas_threads(char** environment) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  long threads = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  for (const char* const name : {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"})
    if (const long wanted = setting(environment, name); wanted > 0) threads = std::min(threads, wanted);
  return static_cast<size_t>(std::max(threads, 1L));
}

#endif

void guard_program(int, char**, char** environment) {
  std::set_terminate(end_by_exception);
  bound_openmp_waits(environment);
#if !CAPSTAN_SANITIZED
  constexpr size_t libraries = 32 << 20;  // what the start of all others takes
  const size_t bytes = blas_threads(environment) * blas_thread_bytes + libraries;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) {
    ::munmap(memory, bytes);
    return;
  }
  print_error(OutOfMemory(bytes, "the start of OpenBLAS: raise ulimit -v, or set OMP_NUM_THREADS=1").what());
  ::_exit(1);
#endif
}

}  // namespace capstan

#if !CAPSTAN_SANITIZED

/// As in the standard library, but says how much was wanted. The other forms, and delete, are made of this one.
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

/// The first code of the program that runs.
__attribute__((section(".preinit_array"), used)) void (*const first)(int, char**, char**) = capstan::guard_program;

/// Opens /dev/null on those of descriptors 0, 1 and 2 that are closed, so that no file of the program gets their number
/// and with it the log. Writing to a standard output that was closed fails, as it would without this. Ends the process
/// when /dev/null is missing.
void open_standard_descriptors() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // Lost results are an error, lost messages are not: only standard error can be written to.
    if (::open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY) != descriptor) ::_exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    open_standard_descriptors();    // before any other file is opened
    std::signal(SIGXFSZ, SIG_IGN);  // a file above `ulimit -f` is an error of write(), with a message
    capstan::catch_mapping_faults();
    capstan::restart_with_best_settings(argv);
    capstan::prepare_thread_ends();
    std::ios::sync_with_stdio(false);  // nothing of the program writes with stdio to standard output
    return capstan::run_command_line(argc, argv);
  } catch (const std::exception& error) {
    capstan::print_error(error.what());
  }
  return capstan::exit_failed;
}
