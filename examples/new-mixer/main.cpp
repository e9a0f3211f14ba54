// `capstan` with one more mixer: train, eval, generate and all other commands, from the same configurations.
#include "apps/commands/commands.hpp"
#include "core/products/blas_info.hpp"
#include "nn/systems/register_mixer.hpp"
#include "running_mean.hpp"

int main(int argc, char** argv) {
  using namespace capstan;
  // OpenBLAS and OpenMP read their settings before main(),
  // so this starts the program once more where better ones exist.
  restart_with_best_settings(argv);

  // From here on a configuration may say `mixer: {type: running-mean, expansion: 2}`.
  register_mixer<RunningMeanConfig>();
  return run_command_line(argc, argv);
}
