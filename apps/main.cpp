// The start of `capstan`, in an order that matters: guard, descriptors, signals, a restart with the best settings, and
// only then the command line. tests/cli/inputs/test_own_files.cpp starts it in strange ways.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "apps/commands/commands.hpp"
#include "apps/guard.hpp"
#include "core/io/mapped_file.hpp"
#include "core/products/blas_info.hpp"

namespace {

/// Makes guard_program() the first code of the program that runs.
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

/// The first process of a container gets no signal that it does not handle: Ctrl-C and `docker stop` would wait for
/// ever. Training and the server handle theirs themselves.
void end_on_signals_as_first_process() {
  if (::getpid() != 1) return;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) std::signal(signal, [](int number) { ::_exit(128 + number); });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    open_standard_descriptors();    // before any other file is opened
    std::signal(SIGXFSZ, SIG_IGN);  // a file above `ulimit -f` is an error of write(), with a message
    end_on_signals_as_first_process();
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
