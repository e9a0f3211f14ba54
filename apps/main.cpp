#include <iostream>

#include "apps/commands/commands.hpp"
#include "core/io/mapping_faults.hpp"
#include "core/io/standard_descriptors.hpp"
#include "core/products/blas_info.hpp"

int main(int argc, char** argv) {
  capstan::open_standard_descriptors();  // before any other file is opened
  capstan::catch_mapping_faults();
  capstan::restart_with_best_settings(argv);
  std::ios::sync_with_stdio(false);  // so that predict can tell whether more input is waiting
  return capstan::run_command_line(argc, argv);
}
