#include "apps/commands.hpp"
#include "core/gemm.hpp"

int main(int argc, char** argv) {
  capstan::restart_with_fast_blas(argv);
  return capstan::run_command_line(argc, argv);
}
