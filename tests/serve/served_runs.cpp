#include "serve/served_runs.hpp"

#include <fstream>

#include "tests/nn/mixer/fading_mixer.hpp"
#include "train/records/log.hpp"

namespace capstan::testing {

namespace fs = std::filesystem;

ServedRuns::ServedRuns() : place_(fs::temp_directory_path() / ("capstan-serve-" + std::to_string(getpid()))) {
  fs::create_directories(place_);
  std::string prose, rows;
  for (int i = 0; i < 80; ++i) {
    prose += "the tape turns a drum and wire runs out slow " + std::to_string(i) + "\n";
    rows += (i % 2 == 0 ? "good\ta fine day " : "bad\tsad night ") + std::to_string(i) + "\n";
  }
  std::ofstream(place_ / "text.txt") << prose;
  std::ofstream(place_ / "rows.tsv") << rows;
  set_log_sink([](LogLevel, std::string_view) {});
  const std::string text =
      "data: {type: text, train: [" + (place_ / "text.txt").string() + "], sequence_length: 32, tokenizer: char}\n";
  const auto model = [](const std::string& mixer, const std::string& more = "") {
    return "model: {type: language-model, width: 16, " + more + "layers: [{mixer: {type: " + mixer + "}}]}\n";
  };
  register_mixer<FadingConfig>();
  for (const std::string mixer :
       {"aft-simple", "aft-local", "aft-conv", "fastformer", "gau", "flash", "attention", "test-fading"})
    train_one(mixer, text, model(mixer));
  train_one("windowed", text, model("attention", "max_length: 64, positions: learned, "));
  train_one(
      "spam",
      "data: {type: labelled, train: [" + (place_ / "rows.tsv").string() + "], valid_fraction: 0.2, tokenizer: byte}\n",
      "model: {type: linear-classifier, words: [1, 2]}\n");
  set_log_sink({});
}

ServedRuns::~ServedRuns() { fs::remove_all(place_); }

void ServedRuns::train_one(const std::string& name, const std::string& data, const std::string& model) {
  const fs::path file = place_ / (name + ".yaml");
  std::ofstream(file) << "folder: " << place_.string() << "\nname: " << name << "\n"
                      << data << model << "train: {steps: 8, batch_size: 4, valid_every: 4}\n";
  runs_.emplace(name, train(ConfigOptions{{file.string()}, {"seed=7"}}));
}

const ServedRuns& served_runs() {
  static const ServedRuns all;
  return all;
}

}  // namespace capstan::testing
