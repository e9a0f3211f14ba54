// Trains a model with a mixer that the library does not have, opens it, and lets it write.
//   train_mixer CONFIG.yaml [KEY=VALUE ...]
#include <cstdio>
#include <exception>

#include "core/products/blas_info.hpp"
#include "nn/systems/register_mixer.hpp"
#include "run/run.hpp"
#include "running_mean.hpp"

int main(int argc, char** argv) {
  // OpenBLAS and OpenMP read their settings before main(),
  // so this starts the program once more where better ones exist.
  capstan::restart_with_best_settings(argv);
  if (argc < 2) {
    std::fprintf(stderr, "usage: train_mixer CONFIG.yaml [KEY=VALUE ...]\n");
    return 2;
  }
  // From here on a configuration may say `mixer: {type: running-mean, expansion: 2}`.
  capstan::register_mixer<capstan::RunningMeanConfig>();
  try {
    const capstan::Run run = capstan::train({{argv[1]}, {argv + 2, argv + argc}});
    capstan::CompletionOptions options;
    options.max_tokens = 40;
    options.sampling.temperature = 0;
    std::printf("The %s\n", run.generate("The ", options).front().text.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_mixer: %s\n", error.what());
    return 1;
  }
}
