#include "serve/served_runs.hpp"

#include "core/io/log.hpp"
#include "tests/nn/mixer/fading_mixer.hpp"
#include "tests/support/texts.hpp"

namespace capstan::testing {

ServedRuns::ServedRuns() {
  place_.write("text.txt", numbered_lines(80, {"the tape turns a drum and wire runs out slow "}));
  place_.write("rows.tsv", numbered_lines(80, {"good\ta fine day ", "bad\tsad night "}));
  place_.write("topics.csv", "labels,text\n" + numbered_lines(120, {"\"['good', 'film']\",fine clever hero film ",
                                                                    "\"['bad']\",sad dull plot end ",
                                                                    "\"['good']\",fine clever hero end ",
                                                                    "\"['bad', 'film']\",sad dull plot film "}));
  set_log_sink([](LogLevel, std::string_view) {});
  const auto of = [&](const std::string& tokenizer) {
    return "data: {type: text, train: [" + place_.path("text.txt") + "], sequence_length: 32, tokenizer: " + tokenizer +
           "}\n";
  };
  const std::string text = of("char");
  const auto model = [](const std::string& mixer, const std::string& more = "") {
    return "model: {type: language-model, width: 16, " + more + "layers: [{mixer: {type: " + mixer + "}}]}\n";
  };
  register_mixer<FadingConfig>();
  for (const std::string mixer :
       {"aft-simple", "aft-local", "aft-conv", "fastformer", "gau", "flash", "attention", "test-fading"})
    train_one(mixer, text, model(mixer));
  train_one("windowed", text, model("attention", "max_length: 64, positions: learned, "));
  const auto labelled = [&](const std::string& file, const std::string& more = "") {
    return "data: {type: labelled, train: [" + place_.path(file) + "], valid_fraction: 0.2, " + more +
           "tokenizer: byte}\n";
  };
  train_one("words", of("word"), model("aft-simple"));
  train_one("bytes", of("byte"), model("aft-simple"));
  const std::string linear = "model: {type: linear-classifier, words: [1, 2]}\n";
  train_one("spam", labelled("rows.tsv"), linear);
  train_one("topics", labelled("topics.csv", "multi_label: true, "), linear);
  const std::string diverging = "steps: 1, batch_size: 4, valid_every: 0, lr: 1e12, schedule: {shape: constant}";
  train_one("broken", text, model("aft-simple"), diverging);
  train_one("broken-classifier", labelled("rows.tsv"),
            "model: {type: text-classifier, width: 16, layers: [{mixer: {type: aft-simple}}]}\n", diverging);
  set_log_sink({});
}

void ServedRuns::train_one(const std::string& name, const std::string& data, const std::string& model,
                           const std::string& train) {
  const std::string file = place_.write(name + ".yaml", "folder: " + place_.path() + "\nname: " + name + "\n" + data +
                                                            model + "train: {" + train + "}\n");
  runs_.emplace(name, capstan::train(ConfigOptions{{file}, {"seed=7"}}));
}

const ServedRuns& served_runs() {
  static const ServedRuns all;
  return all;
}

}  // namespace capstan::testing
