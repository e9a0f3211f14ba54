// What a trained model says about texts: one line in, one line out.
//   score_text RUN_FOLDER <texts
// A language model: bits per byte of the line. A classifier: the probability of every class.
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>

#include "core/products/blas_info.hpp"
#include "data/files/text_file.hpp"
#include "run/run.hpp"

namespace {

void print_answers(const capstan::Run& run, const std::vector<capstan::InputText>& texts) {
  if (run.classes.empty()) {
    const std::vector<capstan::TextScore> scores = run.score(texts);
    for (size_t i = 0; i < texts.size(); ++i) {
      const double bits = -scores[i].log_probability / std::log(2.0);
      std::printf("%.3f bits per byte\t%s\n", bits / static_cast<double>(texts[i].text.size()), texts[i].text.c_str());
    }
    return;
  }
  const std::vector<capstan::Prediction> predictions = run.predict(texts);
  for (size_t i = 0; i < texts.size(); ++i) {
    for (size_t c = 0; c < run.classes.size(); ++c)
      std::printf("%s %.4f\t", run.classes[c].c_str(), static_cast<double>(predictions[i].probabilities[c]));
    std::printf("%s\n", texts[i].text.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  capstan::restart_with_best_settings(argv);  // OpenBLAS and OpenMP read their settings before main()
  if (argc != 2) {
    std::fprintf(stderr, "usage: score_text RUN_FOLDER <texts\n");
    return 2;
  }
  try {
    const capstan::Run run = capstan::Run::open(argv[1]);
    std::vector<capstan::InputText> texts;
    capstan::TextReader in = capstan::TextReader::input("-");
    for (std::string line; in.read_line(line);)
      if (!line.empty()) texts.emplace_back(line);
    print_answers(run, texts);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "score_text: %s\n", error.what());
    return 1;
  }
}
