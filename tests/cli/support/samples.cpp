#include "tests/cli/support/samples.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "core/io/json.hpp"
#include "core/io/safetensors.hpp"
#include "tests/support/source_dir.hpp"

namespace capstan::testing {
namespace {

constexpr const char* language_model_yaml = R"(name: lm
data: {type: text, train: [text], sequence_length: 32, tokenizer: char}
model:
  type: language-model
  width: 16
  max_length: 32
  dropout: 0.1
  layers:
    - {mixer: {type: aft-local, window: 4, rank: 4}, feed_forward: {type: gelu, expansion: 2}}
train: {steps: 6, batch_size: 4, valid_every: 3, log_every: 1, save_every: 2, keep_last: 2, progress: plain,
        keep_optimizer: true}
)";

constexpr const char* classifier_yaml = R"(name: classifier
data: {type: labelled, train: [train.tsv], valid_fraction: 0.2, max_length: 16, tokenizer: char}
model:
  type: text-classifier
  width: 16
  max_length: 16
  dropout: 0.1
  layers:
    - {mixer: {type: aft-full, rank: 4}, feed_forward: {type: gelu, expansion: 2}}
train: {steps: 6, batch_size: 4, valid_every: 3, log_every: 1, save_every: 2, keep_last: 2, progress: plain,
        keep_optimizer: true}
)";

/// Sentences in a fixed order that looks like none.
std::string prose(uint32_t seed, int sentences) {
  static const Words words = "the tape turns a drum and wire runs out slow ship of rope pulls home caf\xc3\xa9";
  std::string text;
  for (int i = 0; i < sentences; ++i) {
    for (int j = 0; j < 7; ++j) {
      seed = seed * 1664525u + 1013904223u;
      text += words[seed >> 28] + (j < 6 ? " " : ".\n");
    }
  }
  return text;
}

const Workplace& trained() {
  return made_once([](const Workplace& place) {
    write_samples(place);
    for (const char* const config : {"lm.yaml", "classifier.yaml"}) {
      const Outcome outcome = run(place, {"train", "--config", config});
      if (outcome.code != 0)
        throw std::runtime_error("the sample " + std::string(config) + " does not train:\n" + outcome.err);
    }
  });
}

}  // namespace

void write_samples(const Workplace& place) {
  place.write("text/a.txt", prose(1, 80));
  place.write("text/b.txt", prose(2, 60));
  std::string rows;
  for (int i = 0; i < 20; ++i)
    rows += "good\ta fine day " + std::to_string(i) + "\nbad\tsad night" +
            std::string(static_cast<size_t>(i % 5), '!') + "\nso so\tdull\n";
  place.write("train.tsv", rows);
  place.write("lm.yaml", language_model_yaml);
  place.write("classifier.yaml", classifier_yaml);
}

Words classify_words(const std::string& name, const Words& overrides) {
  const std::string data = "data.train=[train.tsv] data.test=[test.tsv]";
  return train_words(source_path("configs/classify.yaml"), {"name=" + name}) + data + overrides;
}

Outcome succeed(const Workplace& place, const Words& arguments, const std::string& input) {
  Outcome outcome = run(place, arguments, input);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(indecency(outcome) == "");
  return outcome;
}

double number_of(const std::string& text, const std::string& name) {
  for (const std::string& line : lines_of(text))
    if (line.rfind(name + " ", 0) == 0) return std::stod(line.substr(name.size() + 1));
  return NAN;
}

Words train_words(const std::string& config, const Words& overrides) {
  return Words{"train", "--config", config, "--set"} + overrides;
}

nlohmann::json eval_json(const Workplace& place, const Words& arguments) {
  return parse_json(succeed(place, Words("eval --format json") + arguments).out);
}

std::vector<nlohmann::json> events_of(const Workplace& place, const std::string& name) {
  std::vector<nlohmann::json> events;
  for (const std::string& line : lines_of(place.read("runs/" + name + "/metrics.jsonl")))
    events.push_back(parse_json(line));
  return events;
}

nlohmann::json best_validation(const Workplace& place, const std::string& name) {
  nlohmann::json best;
  for (const nlohmann::json& event : events_of(place, name))
    if (event.at("event") == "valid" && event.at("best") == true) best = event;
  return best;
}

std::string model_of(const std::string& name, const std::string& checkpoint) {
  return "runs/" + name + "/checkpoints/" + checkpoint + "/model.safetensors";
}

std::vector<float> tensor_of(const Workplace& place, const std::string& file, const std::string& name) {
  return SafetensorsFile((place / file).string()).at(name).to_floats();
}

bool same_model(const Workplace& place, const std::string& name, const std::string& other) {
  return place.read(model_of(name)) == place.read(model_of(other));
}

void edit(const Workplace& place, const std::string& file, const std::string& from, const std::string& to) {
  std::string text = place.read(file);
  const size_t at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, from, " in ", text);
  place.write(file, text.replace(at, from.size(), to));
}

void flip_bit(const Workplace& place, const std::string& file, double where) {
  std::string bytes = place.read(file);
  bytes[static_cast<size_t>(where * static_cast<double>(bytes.size() - 1))] ^= 4;
  place.write(file, bytes);
}

std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

Words cells(const std::string& line, char delimiter) {
  Words all(1);
  for (const char c : line)
    if (c == delimiter)
      all.emplace_back();
    else
      all.back() += c;
  return all;
}

void copy_files(const fs::path& from, const fs::path& to) {
  fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
}

void write_trained_samples(const Workplace& place) {
  write_samples(place);
  copy_files(trained() / "runs", place / "runs");
}

Says::Says(const std::string& text) {
  const std::string between = " ... ";
  size_t begin = 0;
  for (size_t end = text.find(between); end != std::string::npos; end = text.find(between, begin)) {
    push_back(text.substr(begin, end - begin));
    begin = end + between.size();
  }
  push_back(text.substr(begin));
}

Outcome check_refused(const Workplace& place, const Refusal& row) {
  INFO(row.name);
  if (row.prepare) row.prepare(place);
  const Outcome outcome = run(place, row.arguments, row.input);
  INFO(outcome.err);
  CHECK(outcome.code == row.code);
  CHECK(indecency(outcome) == "");
  check_contains(outcome.err, row.says);
  return outcome;
}

Outcome check_refused(const Workplace& place, const std::string& name, const Words& arguments, const Says& says,
                      int code, const std::string& input) {
  return check_refused(place, {name, arguments, says, code, {}, input});
}

void check_all_refused(const Workplace& place, const std::vector<Refusal>& rows) {
  for (const Refusal& row : rows) check_refused(place, row);
}

std::vector<Refusal> with_code(int code, std::vector<Refusal> rows) {
  for (Refusal& row : rows) row.code = code;
  return rows;
}

}  // namespace capstan::testing
