// Trains a language model on a text, opens it, and lets it write.
//   train_lm TEXT_FILE [KEY=VALUE ...]        for example: train_lm book.txt train.steps=2000 model.width=256
#include <cstdio>
#include <exception>
#include <string>

#include "core/products/blas_info.hpp"
#include "run/run.hpp"

namespace {

/// A configuration can also come from YAML files: capstan::ConfigOptions{{"lm.yaml"}, {"train.steps=500"}}.
capstan::RunConfig configuration(const std::string& text_file, int argc, char** argv) {
  std::vector<std::string> values{"name=train-lm",       "data.type=text",
                                  "data.tokenizer=byte", "model.type=language-model",
                                  "model.width=128",     "model.layers=[{mixer: aft-local, repeat: 2}]",
                                  "train.steps=300"};
  values.push_back("data.train=[" + text_file + "]");
  values.insert(values.end(), argv, argv + argc);
  return capstan::load_run({{}, values});
}

}  // namespace

int main(int argc, char** argv) {
  capstan::restart_with_best_settings(argv);  // OpenBLAS and OpenMP read their settings before main()
  if (argc < 2) {
    std::fprintf(stderr, "usage: train_lm TEXT_FILE [KEY=VALUE ...]\n");
    return 2;
  }
  try {
    // Writes runs/train-lm, and goes on from its last checkpoint if it is there. Progress is shown on standard error.
    const capstan::Run run = capstan::train(configuration(argv[1], argc - 2, argv + 2));
    std::printf("held-out text: %.3f bits per byte\n", run.evaluate().figure("bits_per_byte"));

    capstan::CompletionOptions options;
    options.sampling.temperature = 0.8;
    std::printf("The %s\n", run.generate("The ", options).front().text.c_str());
  } catch (const std::exception& error) {  // the library throws; messages name the place and the remedy
    std::fprintf(stderr, "train_lm: %s\n", error.what());
    return 1;
  }
}
