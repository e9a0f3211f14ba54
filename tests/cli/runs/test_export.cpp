// capstan export: what it writes, what it refuses, and that a folder is whole or not there.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "core/io/safetensors.hpp"
#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {
/// The overrides that make of lm.yaml a model of Llama's shape.
Outcome train(const Workplace& place, const Words& overrides) {
  return succeed(place, train_words("lm.yaml", overrides));
}

/// The exported weights have the values of the run's and are no larger than they, but for a longer header.
nlohmann::json check_weights(const Workplace& place, const std::string& run, const std::string& folder) {
  succeed(place, {"export", "runs/" + run, "--format", "huggingface", "--output", folder});
  const fs::path ours = place / ("runs/" + run + "/checkpoints/best/model.safetensors"),
                 theirs = place / (folder + "/model.safetensors");
  CHECK(fs::file_size(theirs) < fs::file_size(ours) + 1000);
  const SafetensorsFile trained(ours.string()), exported(theirs.string());
  REQUIRE(exported.tensors().size() == trained.tensors().size());
  for (const FileTensor& tensor : trained.tensors()) {
    CHECK(exported.at(tensor.name).dtype == tensor.dtype);
    CHECK(exported.at(tensor.name).to_floats() == tensor.to_floats());
  }
  return nlohmann::json::parse(place.read(folder + "/config.json"));
}

TEST_CASE("export writes a folder for transformers with all weights, the configuration and where they are from") {
  const TrainedPlace place;
  const Outcome done = succeed(place, "export runs/lm --format huggingface --output out/lm/");
  for (const char* const name : {"README.md", "config.json", "generation_config.json", "model.safetensors",
                                 "modeling_capstan.py", "configuration_capstan.py", "capstan_gated.py",
                                 "pipeline_capstan.py", "tokenizer.json", "tokenizer_config.json"}) {
    CHECK(fs::exists(place / "out/lm" / name));
    CHECK(contains(done.out, std::string("out/lm/") + name));
  }
  CHECK(contains(succeed(place, "export runs/lm --format onnx --output onnx").err, "next: python onnx/export_onnx.py"));
  const auto config = nlohmann::json::parse(place.read("out/lm/config.json"));
  CHECK(config.at("model").at("type") == "language-model");
  CHECK(config.at("model").at("layers").is_array());
  CHECK(config.at("model").at("width").is_number());
  CHECK(config.at("capstan").at("format") == 1);
  CHECK(config.at("capstan").at("run") == "lm");
  CHECK(config.at("capstan").at("step") == 6);
  check_weights(place, "lm", "out/weights");
  CHECK(SafetensorsFile((place / "out/lm/model.safetensors").string()).metadata().at("format") == "pt");
  const std::string card = place.read("out/lm/README.md");
  CHECK(card.rfind("---\npipeline_tag: text-generation\n", 0) == 0);
  check_contains(card, {config.at("capstan").at("weights").get<std::string>(), "```yaml\nname: lm\n"});
}

TEST_CASE("an export has the types of a run's weights, and the rows of its tables of n-grams that are not zero") {
  const SamplePlace place;
  const std::string table = "{orders: [1, 2], buckets: 40000, width: 4}";
  train(place, {"name=tokens", "model.ngram_embedding=" + table});
  succeed(place, train_words("classifier.yaml", {"name=classes", "model.ngrams=" + table}));
  succeed(place, "train --config classify --set name=linear data.train=[train.tsv] model.buckets=65536");
  for (const auto& [run, name, rows] : {std::tuple("tokens", "ngram_embedding.table", 40000),
                                        {"classes", "ngrams.table", 40000},
                                        {"linear", "linear.weight", 65536}}) {
    CAPTURE(run);
    const std::string slim = std::string(run) + "-slim";
    succeed(place, {"slim", std::string("runs/") + run, "--size", "0.7", "--output", "runs/" + slim});
    for (const std::string& each : {std::string(run), slim}) {
      const nlohmann::json stored = check_weights(place, each, "out/" + each).at("tables").at(name);
      CHECK(stored.at("rows") == rows);
      CHECK(stored.at("stored") < rows / 10);
    }
  }
  const Outcome next = train(place, {"name=next", "train.steps=1", "model.ngram_embedding=" + table,
                                     "train.init_from=out/tokens/model.safetensors"});
  CHECK_FALSE(contains(next.err, "fresh"));
}

TEST_CASE_FIXTURE(Samples, "an exported tokenizer adds the tokens of predict and cuts a text where predict cuts it") {
  place.write("pairs.tsv", "a fine day\tgood\nsad night\tbad\ndull\tso so\nfine\tgood\nsad\tbad\n");
  const std::string fills =
      "model={type: masked-language-model, width: 16, max_length: 40, positions: learned, layers: [{mixer: aft-simple, "
      "feed_forward: {type: none}}]}";
  train(place, {"name=masked", fills});
  train(place, {"name=documents", fills, "data.documents=line"});
  train(place,
        {"name=pairs", "data={type: pairs, train: [pairs.tsv], max_source: 9, max_length: 20, tokenizer: char}"});
  succeed(place, "train --config classifier.yaml --set name=short data.truncate=tail");
  const auto part = [&](const std::string& run, const char* file) {
    if (!fs::exists(place / ("out/" + run)))
      succeed(place, {"export", "runs/" + run, "--format", "huggingface", "--output", "out/" + run});
    return nlohmann::json::parse(place.read("out/" + run + "/" + file));
  };
  for (const auto& [run, name] : {std::pair("masked", "start"), {"documents", "<|end|>"}}) {
    const nlohmann::json around = part(run, "tokenizer.json").at("post_processor").at("single");
    REQUIRE(around.size() == 2);
    CHECK(around.at(0).at("SpecialToken").at("id") == name);
    CHECK(part(run, "config.json").at("custom_pipelines").contains("fill-mask"));
    CHECK(part(run, "config.json").at("reading").at("longest") == 32);
  }
  CHECK(part("pairs", "tokenizer_config.json").at("model_max_length") == 11);  // with the start and the separator
  CHECK(part("short", "tokenizer_config.json").at("model_max_length") == 16);
  CHECK(part("short", "config.json").at("reading") == nlohmann::json{{"longest", 16}, {"truncate", "tail"}});
}

TEST_CASE_FIXTURE(Trained, "what an export says of its origin names files, not the folders they are in") {
  const std::string here = (place / "").string();
  train(place,
        {"name=first", "train.steps=1", "folder=" + here + "runs/", "data.train=[" + here + "text/a.txt]",
         "data.valid=[" + here + "text/]", "data.tokenizer={type: saved, file: " + here + "runs/lm/tokenizer.json}",
         "train.init_from=" + here + "runs/lm"});
  succeed(place, "export runs/first --format huggingface --output out");
  for (const char* const name : {"README.md", "config.json"})
    CHECK_FALSE(contains(place.read(std::string("out/") + name), here));
  const std::string card = place.read("out/README.md");
  for (const char* const part :
       {"folder: runs\n", "train: [a.txt]", "valid: [text]", "file: tokenizer.json", "init_from: lm\n"})
    CHECK_MESSAGE(contains(card, part), part);
}

TEST_CASE("a run that starts from an export has its weights, with the table of n-grams where these are the same") {
  const SamplePlace place;
  const std::string ngrams = "model.ngram_embedding={orders: [2], buckets: 64, width: 4, every_block: true}";
  train(place, {"name=first", ngrams});
  succeed(place, "export runs/first --format huggingface --output out");
  const auto next = [&](const std::string& table) {
    return train(place, {"name=next", "train.steps=1", table, "train.init_from=out/model.safetensors"}).err;
  };
  CHECK_FALSE(contains(next(ngrams), "fresh"));
  fs::remove_all(place / "runs/next");
  CHECK(contains(next("model.ngram_embedding={orders: [3], buckets: 64, width: 4}"), "orders were [2], are [3]"));
}

TEST_CASE("a run with another tokenizer of the same size takes neither tokens nor n-grams from an export") {
  const SamplePlace place;
  const std::string ngrams = "model.ngram_embedding={orders: [2], buckets: 64, width: 4}";
  const auto words = [&](const std::string& text) {
    place.write("words.txt", text);
    return Words{"data.train=[words.txt]", "data.tokenizer={type: char}", ngrams};
  };
  const std::string first = text_of(Words(400, "abcdefgh")), other = text_of(Words(400, "ijklmnop"));
  train(place, words(first) + "name=first train.steps=1");
  succeed(place, "export runs/first --format huggingface --output out");
  const Words from = "train.steps=1 train.init_from=out/model.safetensors";
  CHECK_FALSE(contains(train(place, words(first) + from + "name=same").err, "fresh"));
  check_says(train(place, words(other) + from + "name=other"),
             {"the export has another tokenizer", "another tokenizer: n-grams are hashed by the ids of their tokens"});
}

TEST_CASE_FIXTURE(Trained, "export refuses a folder that holds anything, and leaves it as it was") {
  place.write("out/note.txt", "mine");
  const auto before = place.content("out");
  check_refused(place, "folder in use", "export runs/lm --format huggingface --output out",
                "out ... no empty folder ... give another one");
  CHECK(place.content("out") == before);
  check_refused(place, "format", "export runs/lm --format keras --output new", "keras", 2);
  check_refused(place, "no run", "export text --format gguf --output new", "text");
  CHECK_FALSE(fs::exists(place / "new"));
}

TEST_CASE_FIXTURE(Trained, "export to GGUF is for language models; the script for llama.cpp is in the folder") {
  check_refused(place, "a classifier", "export runs/classifier --format gguf --output new",
                "GGUF has language models of Llama's shape ... not a text-classifier");
  CHECK_FALSE(fs::exists(place / "new"));
  for (const auto& entry : fs::directory_iterator(place.folder()))
    CHECK(entry.path().filename().string().rfind(".exporting", 0) != 0);
  const Outcome outcome = succeed(place, "export runs/lm --format gguf --output out");
  CHECK(contains(outcome.err, "next: python out/export_gguf.py"));
  CHECK(contains(place.read("out/export_gguf.py"), "GGUFWriter"));
  CHECK(fs::exists(place / "out/model.safetensors"));
}

TEST_CASE_FIXTURE(Samples, "a linear classifier is exported with the module that reads texts") {
  succeed(place, "train --config classify --set name=linear data.train=[train.tsv]");
  succeed(place, "export runs/linear --format huggingface --output out");
  CHECK(fs::exists(place / "out/modeling_capstan_linear.py"));
  CHECK_FALSE(fs::exists(place / "out/modeling_capstan.py"));
  check_contains(succeed(place, "inspect runs/linear").out, {"classes     3\n", " in use\nweights     "});
  check_refused(place, "no validation data", "eval runs/linear --split valid",
                "there is no valid split ... --split test ... cross-validation");
  check_refused(place, "ONNX", "export runs/linear --format onnx --output new",
                "linear-classifier ... use --format huggingface");
  succeed(place, "train --config classify --set name=words data.train=[train.tsv] data.tokenizer=word");
  check_refused(place, "tokenizer", "export runs/words --format huggingface --output new",
                "what the tokenizer 'word' leaves of a text ... data.tokenizer: byte");
  CHECK_FALSE(fs::exists(place / "new"));
}

}  // namespace
}  // namespace capstan::testing
