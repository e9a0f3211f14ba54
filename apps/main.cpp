#include "apps/commands.hpp"
<<<<<<< HEAD
#include "core/gemm.hpp"

int main(int argc, char** argv) {
  capstan::restart_with_fast_blas(argv);
=======
#include "core/machine.hpp"

int main(int argc, char** argv) {
  capstan::restart_with_best_settings(argv);
>>>>>>> main
  return capstan::run_command_line(argc, argv);
}
