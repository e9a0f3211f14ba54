#include <iostream>

#include "apps/commands/commands.hpp"
#include "core/products/blas_info.hpp"

int main(int argc, char** argv) {
  capstan::restart_with_best_settings(argv);
  std::ios::sync_with_stdio(false);  // so that predict can tell whether more input is waiting
  return capstan::run_command_line(argc, argv);
}
