#include "tests/faults/kinds.hpp"

#include <cstdio>
#include <cstdlib>
#include <regex>
#include <stdexcept>

#include "tests/faults/traced_process.hpp"

namespace capstan::testing {
namespace {

/// A training command: this configuration with these keys.
Kind training(const std::string& name, const std::string& config, const Words& keys) {
  Kind kind;
  kind.name = name;
  kind.command = Words{"train", "--config", config, "--set", "name=" + name, "threads=1"} + keys;
  kind.runs = {"runs/" + name};
  return kind;
}

std::string mixer(const std::string& text) { return "model.layers.0.mixer=" + text; }

std::vector<Kind> make_training_kinds() {
  const std::string sentencepiece = "data.tokenizer={type: sentencepiece, vocabulary_size: 300}";
  std::vector<Kind> kinds = {
      training("averaged", "lm.yaml", {"train.accumulate=2", "train.micro_batch_tokens=64", "data.windows=random"}),
      training("cached", "lm.yaml", {sentencepiece, "data.cache=cache", mixer("aft-simple")}),
      training("ngrams", "classifier.yaml",
               {"model.ngrams.orders=[1,2]", "model.ngrams.buckets=500", "model.ngrams.width=8",
                "model.ngrams.dropout=0.1", mixer("{type: aft-conv, heads: 2, window: 3}")}),
      training("pieces", "classifier.yaml",
               {sentencepiece, "model.class_weights=balanced", mixer("{type: fastformer, heads: 2}")}),
      training("full", "classifier.yaml", {"train.batch_tokens=48", "train.optimizer.type=sgd", "train.lr=0.05"}),
      training("muon", "lm.yaml", {"train.optimizer.type=muon", mixer("{type: flash, chunk: 8, key_dim: 8}")}),
      training("masked", "masked.yaml", {"train.accumulate=2"}),
      training("pairs", "pairs.yaml", {"model.prefix=bidirectional", mixer("{type: gau, key_dim: 8}")}),
      training("linear", "linear.yaml", {}),
      training("label-sets", "classifier.yaml",
               {"data.multi_label=true", "train.monitor=micro-f1", mixer("{type: gau, key_dim: 8}")}),
      training("short-conv", "lm.yaml",
               {"model.layers.0.short_conv=3", "train.freeze=[embed.*]", mixer("{type: attention, heads: 2}")}),
      training("lion", "classifier.yaml", {"train.optimizer.type=lion"}),
      training("bf16", "lm.yaml", {"train.precision=bf16", mixer("{type: gau, key_dim: 8}")}),
      training("often", "lm.yaml", {"train.save_every=1", "train.keep_last=1"}),
      training("stalled", "lm.yaml", {"train.save_every=1", "train.lr=1e-30"}),  // the best loses its moments
  };
  Kind sweep;
  sweep.name = "sweep";
  sweep.command = {"sweep", "--config", "lm.yaml", "--set", "name=grid", "threads=1", "sweep.seed=[1, 2]"};
  sweep.runs = {"runs/grid/seed=1", "runs/grid/seed=2"};
  kinds.push_back(sweep);
  return kinds;
}

/// The same command for the second time, after it was killed in the middle.
Kind resumed(const Kind& kind) {
  Kind result = kind;
  result.name = "resumed-" + kind.name;
  result.half_done = true;
  return result;
}

Kind reading(const std::string& name, Words command, const Kind& trained) {
  Kind kind;
  kind.name = name;
  kind.command = std::move(command);
  kind.before = {trained.command};
  return kind;
}

std::vector<Kind> make_all_kinds() {
  std::vector<Kind> kinds = training_kinds();
  const auto trained = [](const std::string& name) {
    for (const Kind& kind : training_kinds())
      if (kind.name == name) return kind;
    throw std::runtime_error("no kind " + name);
  };
  for (const char* const name : {"averaged", "cached", "ngrams", "sweep"}) kinds.push_back(resumed(trained(name)));
  kinds.push_back(reading("eval", "eval runs/cached --split valid", trained("cached")));
  kinds.push_back(reading("predict", "predict runs/ngrams lines.txt", trained("ngrams")));
  kinds.push_back(reading("predict-linear", "predict runs/linear lines.txt", trained("linear")));
  kinds.push_back(reading("score", "score runs/averaged lines.txt", trained("averaged")));
  kinds.push_back(reading("embed", "embed runs/ngrams lines.txt", trained("ngrams")));
  kinds.push_back(
      reading("generate", Words{"generate", "runs/averaged", "-n", "20", "--prompt", "the "}, trained("averaged")));
  kinds.push_back(reading("compare", "compare runs/averaged", trained("averaged")));
  return kinds;
}

void must_succeed(const Outcome& outcome, const std::string& what) {
  if (outcome.code != 0) throw std::runtime_error(what + " does not run undisturbed:\n" + outcome.err);
}

/// The folder that prepare() copies; made once per kind.
const Workplace& prepared(const Kind& kind) {
  static std::map<std::string, Workplace> places;
  const bool is_new = places.count(kind.name) == 0;
  const Workplace& place = places[kind.name];
  if (!is_new) return place;
  write_inputs(place);
  for (const Words& command : kind.before) must_succeed(run(place, command), kind.name);
  if (kind.half_done) {
    KillAtCall counted;
    {
      const Workplace elsewhere;
      write_inputs(elsewhere);
      must_succeed(run_traced(elsewhere, kind.command, counted), kind.name);
    }
    KillAtCall middle(counted.last * 2 / 3);
    if (run_traced(place, kind.command, middle).signal == 0) throw std::runtime_error(kind.name + " was not killed");
  }
  return place;
}

}  // namespace

const std::vector<Kind>& training_kinds() {
  static const std::vector<Kind> kinds = make_training_kinds();
  return kinds;
}

const std::vector<Kind>& all_kinds() {
  static const std::vector<Kind> kinds = make_all_kinds();
  return kinds;
}

const Kind& kind_called(const std::string& name) {
  for (const Kind& kind : all_kinds())
    if (kind.name == name) return kind;
  throw std::runtime_error("there is no kind of run called " + name);
}

void write_inputs(const Workplace& place) {
  setenv("CAPSTAN_BF16", "emulate", 1);
  write_samples(place);
  const std::string lm = place.read("lm.yaml"), model = lm.substr(lm.find("model:"));
  std::string masked = model;
  masked.replace(masked.find("language-model"), 0, "masked-");
  place.write("masked.yaml",
              "name: masked\n" + lm.substr(lm.find("data:"), lm.find("model:") - lm.find("data:")) + masked);
  place.write(
      "pairs.yaml",
      "name: pairs\ndata: {type: pairs, train: [pairs.tsv], valid_fraction: 0.2, max_length: 32, max_source: 8, "
      "tokenizer: char}\n" +
          model);
  std::string pairs;
  for (int i = 10; i < 70; ++i) pairs += std::to_string(i) + "\t" + std::to_string(7 * i % 50) + "\n";
  place.write("pairs.tsv", pairs);
  place.write(
      "linear.yaml",
      "name: linear\ndata: {type: labelled, train: [train.tsv], valid_fraction: 0, max_length: 0, tokenizer: byte}\n"
      "model: {type: linear-classifier, words: [1, 2], characters: [2, 3], text_ends: true}\n"
      "train: {epochs: 1, progress: plain}\n");
  place.write("lines.txt", "a fine day\nsad night!\ndull\n");
}

void prepare(const Workplace& place, const Kind& kind) {
  const Workplace& from = prepared(kind);
  for (const fs::directory_entry& entry : fs::directory_iterator(from.folder()))
    copy_files(entry.path(), place.folder() / entry.path().filename());
}

namespace {

/// Lines of metrics without what differs from run to run.
std::string without_times(const std::string& lines) {
  static const std::regex varying("\"(seconds|tokens_per_second|rss_bytes|peak_rss_bytes)\":[^,}]*,?");
  return std::regex_replace(lines, varying, "");
}

}  // namespace

Result result_of(const Workplace& place, const Kind& kind, const Outcome& outcome) {
  Result result;
  for (const std::string& folder : kind.runs) {
    result[folder + "/metrics.jsonl"] = without_times(place.read(folder + "/metrics.jsonl"));
    for (const char* const link : {"last", "best"})
      for (const char* const file : {"model.safetensors", "optimizer.safetensors"}) {
        if (link == std::string("best") && file == std::string("optimizer.safetensors")) continue;  // for a time
        const std::string name = folder + "/checkpoints/" + link + "/" + file;
        result[name] = place.read(name);
      }
  }
  if (kind.runs.empty()) result["standard output"] = outcome.out;
  return result;
}

const Result& expected_result(const Kind& kind) {
  static std::map<std::string, Result> results;
  const auto found = results.find(kind.name);
  if (found != results.end()) return found->second;
  Kind unbroken = kind;
  if (kind.half_done) {
    unbroken.half_done = false;
    unbroken.name += " unbroken";
  }
  const Workplace place;
  prepare(place, unbroken);
  const Outcome outcome = run(place, kind.command);
  must_succeed(outcome, kind.name);
  const Result result = result_of(place, kind, outcome);
  for (const auto& [name, content] : result)
    if (content.empty()) throw std::runtime_error(kind.name + " leaves no " + name);
  return results.emplace(kind.name, result).first->second;
}

std::string differences(const Result& result, const Result& expected) {
  std::string names;
  for (const auto& [name, content] : expected) {
    const auto found = result.find(name);
    if (found == result.end() || found->second != content) names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

Extent extent(int default_count) {
  const char* const count = std::getenv("CAPSTAN_ATTACK_COUNT");
  const char* const seed = std::getenv("CAPSTAN_ATTACK_SEED");
  return {count != nullptr ? std::stoi(count) : default_count,
          seed != nullptr ? static_cast<uint32_t>(std::stoul(seed)) : 1};
}

std::vector<Kind> chosen(const std::vector<Kind>& kinds) {
  const char* const only = std::getenv("CAPSTAN_ATTACK_ONLY");
  if (only == nullptr) return kinds;
  return {kind_called(only)};
}

void tell(const std::string& line) {
  if (std::getenv("CAPSTAN_ATTACK_COUNT") != nullptr) std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace capstan::testing
