// Training steps, blocks and decoding of whole models: one subject, timed on request (bench/serve.hpp).
//
//   bench_models --system S --work W ...      as bench/timing.py starts it
#include <CLI/CLI.hpp>
#include <cstdio>

#include "bench/serve.hpp"
#include "core/machine/kernel_levels.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "core/products/gemm_backend.hpp"

using namespace capstan;

int main(int argc, char** argv) try {
  restart_with_best_settings(argv);
  check_kernel_choice();
  bench::Setup setup;
  std::string work = "step";
  int threads = 0;
  bool portable = false;

  CLI::App cli{"Training steps, blocks and decoding of whole models, timed on request"};
  cli.add_option("--system", setup.system);
  cli.add_option("--work", work, "step, forward, both or decode");
  cli.add_option("--threads", threads, "0: one per physical core");
  cli.add_option("--width", setup.width);
  cli.add_option("--layers", setup.layers, "of a Transformer; gau and flash have two for each");
  cli.add_option("--batch", setup.batch);
  cli.add_option("--length", setup.length, "decode: tokens before the timed ones");
  cli.add_option("--max-length", setup.max_length, "longest position; 0: the length");
  cli.add_option("--lanes", setup.lanes,
                 "parts of a batch, each computed by one thread: train.lanes; 0: as many as it chooses");
  cli.add_option("--micro", setup.micro, "tokens per micro-batch; 0: the whole batch at once");
  cli.add_flag("--int8", setup.int8, "decode: weights in 8 bits");
  cli.add_flag("--bf16", setup.bf16, "training steps with products in bf16; decode: weights rounded to bf16");
  cli.add_flag("--portable", portable, "products as with train.kernels: portable");
  cli.add_option("--weights", setup.weights, "safetensors file with every parameter");
  cli.add_option("--data", setup.data, "safetensors file with tokens and labels, or x");
  CLI11_PARSE(cli, argc, argv);

  set_threads(threads);
  if (portable) set_gemm_backend(GemmBackend::portable);
  setup.work = bench::work_called(work);
  bench::serve(setup);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_models: %s\n", error.what());
  return 1;
}
