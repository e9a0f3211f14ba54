#include <csignal>
#include <iostream>

#include "apps/commands/commands.hpp"
#include "apps/guard.hpp"
#include "core/io/mapping_faults.hpp"
#include "core/io/standard_descriptors.hpp"
#include "core/products/blas_info.hpp"

namespace {

/// The first code of the program that runs.
__attribute__((section(".preinit_array"), used)) void (*const first)(int, char**, char**) = capstan::guard_program;

}  // namespace

int main(int argc, char** argv) {
  try {
    capstan::open_standard_descriptors();  // before any other file is opened
    std::signal(SIGXFSZ, SIG_IGN);         // a file above `ulimit -f` is an error of write(), with a message
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
