// What a trained model says of texts: one line in, one line out.
//   score_text RUN_FOLDER <texts
// A language model: bits per byte of the line. A classifier: the probability of every class.
#include <cmath>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

#include "core/ops/softmax.hpp"
#include "core/products/blas_info.hpp"
#include "data/batches/batcher.hpp"
#include "run/setup/run_model.hpp"

namespace {

using namespace capstan;

/// How many bits the model needs for a byte of this line: its loss over the line's tokens, in bits, per byte.
void print_bits(const SavedRun& run, const std::string& line) {
  // A language model predicts each token from those before it; the start token precedes the first one.
  std::vector<int32_t> tokens = run.tokenizer->encode(line), inputs = tokens;
  inputs.insert(inputs.begin(), start_token(run));
  inputs.pop_back();

  Batch batch = pad_rows({inputs});
  batch.labels = Ids(batch.tokens.shape(), tokens);
  Context context;
  context.segments = Segments(batch.segment_ids);
  // No tape is active, so nothing is recorded and nothing is kept for a gradient.
  const TaskLoss loss = run.model->language_model().loss(batch, context);
  const double bits = static_cast<double>(loss.sum.value().item()) / std::log(2.0);
  std::printf("%.3f bits per byte\t%s\n", bits / static_cast<double>(line.size()), line.c_str());
}

void print_probabilities(const SavedRun& run, const std::string& line) {
  const Batch batch = pad_rows({run.tokenizer->encode(line)});
  Context context;
  context.segments = Segments(batch.segment_ids);
  const Array probabilities = softmax(run.model->text_classifier().logits(batch.tokens, context)).value();
  for (size_t c = 0; c < run.classes.size(); ++c)
    std::printf("%s %.4f\t", run.classes[c].c_str(), static_cast<double>(probabilities[static_cast<int64_t>(c)]));
  std::printf("%s\n", line.c_str());
}

/// Texts beyond the last position a model knows would be refused; `predict` and `eval` cut them.
bool fits(const SavedRun& run, const std::string& line) {
  const auto limit = run.model->position_limit();
  return !limit || static_cast<int64_t>(run.tokenizer->encode(line).size()) <= *limit;
}

int score(const std::string& folder) {
  // The folder holds all that is needed: configuration, tokenizer, classes and the best checkpoint's weights.
  const SavedRun run = open_run(folder);
  for (std::string line; std::getline(std::cin, line);) {
    if (line.empty()) continue;
    if (!fits(run, line)) {
      std::printf("longer than the model's positions\t%s\n", line.c_str());
    } else if (run.model->is<capstan::LanguageModel>()) {
      print_bits(run, line);
    } else {
      print_probabilities(run, line);
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  restart_with_best_settings(argv);  // OpenBLAS and OpenMP read their settings before main()
  if (argc != 2) {
    std::fprintf(stderr, "usage: score_text RUN_FOLDER <texts\n");
    return 2;
  }
  try {
    return score(argv[1]);
  } catch (const std::exception& error) {
    // The library throws; what to do about it is the program's affair. Messages name the file and the remedy.
    std::fprintf(stderr, "score_text: %s\n", error.what());
    return 1;
  }
}
