// `capstan` with one mixer more: train, eval, generate and all the rest, from the same configurations.
#include <memory>

#include "apps/commands/commands.hpp"
#include "core/products/blas_info.hpp"
#include "nn/mixers/custom_mixer.hpp"
#include "running_mean.hpp"

int main(int argc, char** argv) {
  using namespace capstan;
  // OpenBLAS and OpenMP read their settings before main(), so this starts the program once more where better ones
  // exist.
  restart_with_best_settings(argv);

  // From here on `mixer: {type: custom, name: running-mean}` is ours, in every layer that asks for it.
  register_mixer("running-mean", [](const Scope& scope, const MixerShape& shape) {
    return std::make_unique<RunningMean>(scope, shape);
  });
  return run_command_line(argc, argv);
}
