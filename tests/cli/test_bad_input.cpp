// Wrong configurations, command lines and data: exit code 1 or 2, and a message that names the place and the remedy.
#include <doctest/doctest.h>

#include "tests/cli/samples.hpp"

namespace capstan::testing {
namespace {

using Words = std::vector<std::string>;

/// `capstan train --config lm.yaml --set name=new ...`
Words train(const Words& overrides, const std::string& config = "lm.yaml") {
  Words words{"train", "--config", config, "--set", "name=new"};
  words.insert(words.end(), overrides.begin(), overrides.end());
  return words;
}

/// A file to be written before.
std::function<void(const Workplace&)> file(const std::string& name, const std::string& text) {
  return [=](const Workplace& place) { place.write(name, text); };
}

/// Every row in its own folder: nothing a run makes may be there afterwards.
void check_rows(const std::vector<Refusal>& rows) {
  for (const Refusal& row : rows) {
    const Workplace place;
    write_samples(place);
    check_refused(place, row);
    INFO(row.name);
    CHECK_FALSE(std::filesystem::exists(place / "runs/new/checkpoints/last"));
  }
}

TEST_CASE("a wrong configuration is refused") {
  const auto config = [](const std::string& text) { return file("mine.yaml", text); };
  check_rows({
      {"unknown key",
       config("trian: 3\n"),
       {"train", "--config", "lm.yaml", "mine.yaml"},
       2,
       {"mine.yaml:1:1", "trian", "train"}},
      {"misspelt key",
       config("train:\n  btach_size: 3\n"),
       {"train", "--config", "lm.yaml", "mine.yaml"},
       2,
       {"mine.yaml:2:3", "btach_size", "did you mean batch_size?"}},
      {"duplicate key",
       config("name: a\nseed: 1\nname: b\n"),
       {"train", "--config", "lm.yaml", "mine.yaml"},
       2,
       {"mine.yaml:3:1", "name", "duplicate key", "line 1"}},
      {"wrong type",
       config("train:\n  lr: fast\n"),
       {"train", "--config", "lm.yaml", "mine.yaml"},
       2,
       {"mine.yaml:2:7", "train.lr", "expected a number", "\"fast\""}},
      {"negative width",
       config("model: {width: -16}\n"),
       {"train", "--config", "lm.yaml", "mine.yaml"},
       2,
       {"mine.yaml:1:16", "model.width", "from 0 to 65536", "-16"}},
      {"two errors at once",
       config("train: {lr: fast, steps: many}\n"),
       {"train", "--config", "lm.yaml", "mine.yaml"},
       2,
       {"train.lr", "train.steps"}},
      {"unfinished YAML",
       config("name: [a\n"),
       {"train", "--config", "mine.yaml"},
       2,
       {"mine.yaml:", "not valid YAML"}},
      {"empty file",
       config(""),
       {"train", "--config", "mine.yaml"},
       2,
       {"mine.yaml", "contains no configuration", "expected keys"}},
      {"not a mapping",
       config("- a\n- b\n"),
       {"train", "--config", "mine.yaml"},
       2,
       {"mine.yaml:1:1", "expected keys"}},
      {"bytes that are no text",
       config(std::string("\x00\xff\xfe\x01", 4)),
       {"train", "--config", "mine.yaml"},
       2,
       {"mine.yaml"}},
      {"missing file", {}, {"train", "--config", "absent.yaml"}, 2, {"absent.yaml", "no such file"}},
      {"a folder", {}, {"train", "--config", "text"}, 2, {"text", "folder"}},
      {"more tokens than positions",
       {},
       train({"data.sequence_length=64"}),
       2,
       {"data.sequence_length", "64 tokens", "32 positions", "model.max_length"}},
      {"the same for labelled texts",
       {},
       train({"data.max_length=17"}, "classifier.yaml"),
       2,
       {"data.max_length", "17 tokens", "16 positions", "model.max_length"}},
      {"no longest length where the model has one",
       {},
       train({"data.max_length=0"}, "classifier.yaml"),
       2,
       {"data.max_length", "must be limited", "16 positions"}},
      {"a classifier on text without labels",
       config("data: {type: text, train: [text], sequence_length: 16}\n"),
       {"train", "--config", "classifier.yaml", "mine.yaml"},
       2,
       {"data.type", "text-classifier", "labelled"}},
      {"an infinite learning rate", {}, train({"train.lr=inf"}), 2, {"--set train.lr=inf", "greater than 0"}},
      {"no end", {}, train({"train.steps=0"}), 2, {"train.steps", "train.epochs", "never end"}},
  });
}

TEST_CASE("a wrong command line is refused") {
  check_rows({
      {"--set of an unknown key", {}, train({"train.widht=3"}), 2, {"--set train.widht=3", "unknown key"}},
      {"--set of a misspelt key", {}, train({"model.widht=3"}), 2, {"--set model.widht=3", "did you mean width?"}},
      {"--set into a number", {}, train({"train.steps.more=3"}), 2, {"train.steps"}},
      {"--set behind the list's end", {}, train({"model.layers.7.repeat=2"}), 2, {"model.layers.7.repeat=2"}},
      {"--set without a value", {}, train({"seed"}), 2, {"--set", "seed", "path.to.key=value"}},
      {"--set alone", {}, {"train", "--config", "lm.yaml", "--set"}, 2, {"--set", "KEY=VALUE"}},
      {"no --config", {}, {"train"}, 2, {"--config is required", "capstan train --help"}},
      {"no --config to check", {}, {"config", "check"}, 2, {"--config"}},
      {"no command", {}, {}, 2, {"train", "predict", "generate", "Begin with", "Exit codes"}},
      {"no command of config", {}, {"config"}, 2, {"print", "check", "table"}},
      {"a command that does not exist", {}, {"frobnicate"}, 2, {"frobnicate: unknown command", "capstan --help"}},
      {"a misspelt command", {}, {"trian", "--config", "lm.yaml"}, 2, {"trian", "did you mean train?"}},
      {"a misspelt command of config", {}, {"config", "chekc"}, 2, {"chekc", "did you mean check?"}},
      {"an unknown option", {}, {"train", "--config", "lm.yaml", "--frob"}, 2, {"--frob", "capstan train --help"}},
      {"a misspelt option",
       {},
       {"generate", "runs/lm", "--temprature", "1"},
       2,
       {"--temprature: unknown option, did you mean --temperature?", "for example: capstan generate runs/",
        "--temperature 0"}},
      {"a misspelt option with its value",
       {},
       {"predict", "runs/a", "--topk=5"},
       2,
       {"did you mean --top-k?", "--top-k 5"}},
      {"a misspelt option whose value is taken for a run",
       {},
       {"eval", "--splt", "test", "runs/a"},
       2,
       {"--splt: unknown option, did you mean --split?", "for example: capstan eval runs/", "--split test"}},
      {"a key as an option", {}, {"train", "--train.lr", "3"}, 2, {"--set train.lr=VALUE"}},
      {"help for a misspelt command", {}, {"help", "trian"}, 2, {"did you mean train?", "for example: capstan train"}},
      {"--help of a misspelt command", {}, {"trian", "--help"}, 2, {"did you mean train?"}},
      {"a misspelt recipe", {}, {"train", "--config", "clasify"}, 2, {"clasify", "did you mean classify?"}},
      {"an unknown option before all", {}, {"--frob", "train"}, 2, {"--frob", "--help"}},
      {"too much", {}, {"eval", "runs/a", "runs/b"}, 2, {"runs/b", "capstan eval --help"}},
      {"no run", {}, {"generate"}, 2, {"RUN is required", "capstan generate --help"}},
      {"nothing to inspect", {}, {"inspect"}, 2, {"RUN|FILE ... is required"}},
      {"a misspelt help", {}, {"hlep"}, 2, {"hlep: unknown command, did you mean help?"}},
      {"more than version", {}, {"version", "x"}, 2, {"x: unknown argument"}},
      {"a file to evaluate", {}, {"eval", "runs/a", "train.tsv"}, 2, {"--set data.test=[train.tsv] --split test"}},
      {"data for a configuration",
       {},
       {"config", "check", "--config", "train.tsv"},
       2,
       {"train.tsv is not a YAML configuration", "--set data.train=[train.tsv]"}},
      {"a recipe of a folder", {}, {"train", "--config", "imdb-bytes"}, 2, {"did you mean compare/imdb-bytes?"}},
      {"not a number", {}, {"generate", "runs/lm", "-n", "many"}, 2, {"--tokens", "many"}},
      {"fewer than no tokens",
       {},
       {"generate", "runs/lm", "-n", "-5"},
       2,
       {"--tokens", "from -1 to 1000000000000", "-5"}},
      {"a share above 1", {}, {"generate", "runs/lm", "--top-p", "1.5"}, 2, {"--top-p", "from 0 to 1", "1.5"}},
      {"a negative temperature",
       {},
       {"generate", "runs/lm", "--temperature", "-1"},
       2,
       {"--temperature", "at least 0"}},
      {"no temperature",
       {},
       {"generate", "runs/lm", "--temperature", "nan"},
       2,
       {"--temperature", "at least 0", "nan"}},
      {"a negative seed", {}, {"generate", "runs/lm", "--seed", "-1"}, 2, {"--seed", "at least 0", "-1"}},
      {"no penalty",
       {},
       {"generate", "runs/lm", "--repetition-penalty", "0"},
       2,
       {"--repetition-penalty", "greater than 0"}},
      {"weights of no kind",
       {},
       {"generate", "runs/lm", "--weights", "fp8"},
       2,
       {"--weights", "float32", "bf16", "fp8"}},
      {"a batch of none",
       {},
       {"predict", "runs/classifier", "--batch-size", "0"},
       2,
       {"--batch-size", "from 1 to 65536"}},
      {"a negative length", {}, {"inspect", "lm.yaml", "--length", "-3"}, 2, {"--length", "from 0 to 16777216"}},
  });
}

TEST_CASE("data that cannot be learnt from are refused") {
  const std::string binary(
      "\x7f"
      "ELF\x02\x00\x00\xd0\xff",
      9),
      latin1 = "na\xefve\nfine\n";
  check_rows({
      {"missing file",
       {},
       train({"data.train=absent.txt"}),
       2,
       {"--set data.train=absent.txt: data.train.0", "no such file or folder", "check the path",
        "or set data.train=[FILE]"}},
      {"empty file", file("empty.txt", ""), train({"data.train=empty.txt"}), 1, {"empty.txt", "empty"}},
      {"an empty folder",
       [](const Workplace& p) { std::filesystem::create_directory(p / "none"); },
       train({"data.train=none"}),
       1,
       {"none", "holds no text"}},
      {"a folder of binary files",
       file("none/a.bin", binary),
       train({"data.train=none"}),
       1,
       {"none", "holds no text", "binary"}},
      {"a pattern that matches nothing",
       {},
       train({"data.train=text/*.cpp"}),
       1,
       {"text/*.cpp", "no text file matches"}},
      {"include that lets nothing through", {}, train({"data.include=['*.cpp']"}), 1, {"text", "include"}},
      {"binary, by characters",
       file("a.bin", binary),
       train({"data.train=a.bin"}),
       1,
       {"a.bin:1:", "not valid UTF-8", "tokenizer 'byte'"}},
      {"binary, by words",
       file("a.bin", binary),
       train({"data.train=a.bin", "data.tokenizer=word"}),
       1,
       {"a.bin:1:", "not valid UTF-8", "tokenizer 'byte'"}},
      {"Latin-1, by characters",
       file("a.txt", "fine\n" + latin1),
       train({"data.train=a.txt"}),
       1,
       {"a.txt:2:3", "0xef", "UTF-8"}},
      {"Latin-1, by words",
       file("a.txt", latin1),
       train({"data.train=a.txt", "data.tokenizer=word"}),
       1,
       {"a.txt:1:3", "0xef", "UTF-8"}},
      {"not gzip", file("a.txt.gz", "plain"), train({"data.train=a.txt.gz"}), 1, {"a.txt.gz", "not a gzip file"}},
      {"too little text",
       file("a.txt", "ab"),
       train({"data.train=a.txt"}),
       1,
       {"training text", "sequence_length", "add text"}},
      {"a vocabulary that is absent",
       {},
       train({"data.tokenizer.type=word", "data.tokenizer.vocabulary=words.txt"}),
       1,
       {"words.txt", "no such file"}},
      {"a vocabulary with a word twice",
       file("words.txt", "the\na\nthe\n"),
       train({"data.tokenizer.type=word", "data.tokenizer.vocabulary=words.txt"}),
       1,
       {"words.txt:3", "the", "line 1"}},
  });
}

TEST_CASE("labelled texts that are wrong are refused") {
  const auto labelled = [](const std::string& text, const Words& more = {}, const std::string& name = "bad.tsv") {
    Words words = train({"data.train=" + name}, "classifier.yaml");
    words.insert(words.end(), more.begin(), more.end());
    return std::make_pair(file(name, text), words);
  };
  struct Row {
    const char* name;
    std::pair<std::function<void(const Workplace&)>, Words> input;
    std::vector<std::string> says;
  };
  const std::string good = "good\ta day\nbad\ta night\n";
  std::vector<Refusal> rows;
  for (const Row& row : std::vector<Row>{
           {"a row with one column",
            labelled(good + "bad\n"),
            {"bad.tsv:3", "too few columns: found 1, but most rows have 2"}},
           {"spaces for tabs", labelled("good a day\nbad a night\n"), {"bad.tsv:1", "too few columns", "tabs"}},
           {"unknown label",
            labelled(good + "goood\ta day\n", {"data.classes=[good,bad]"}),
            {"bad.tsv:3", "goood", "did you mean 'good'?"}},
           {"one class only",
            labelled("good\ta day\ngood\ta night\n"),
            {"bad.tsv", "'good'", "at least two classes", "label_column"}},
           {"a text without words", labelled(good + "bad\t\n"), {"bad.tsv:3", "empty", "skip_empty"}},
           {"a text that is too long",
            labelled(good + "bad\t" + std::string(40, 'x') + "\n", {"data.truncate=error"}),
            {"bad.tsv:3", "40 tokens", "max_length = 16", "truncate"}},
           {"empty file", labelled(""), {"bad.tsv", "empty"}},
           {"header only", labelled("label\ttext\n", {"data.header=true"}), {"bad.tsv", "no examples"}},
           {"a column that does not exist",
            labelled("label\ttext\n" + good, {"data.header=true", "data.label_column=klass"}),
            {"bad.tsv:1", "klass", "label, text"}},
           {"an open quote",
            labelled("good,\"a day\nbad,a night\n", {}, "bad.csv"),
            {"bad.csv:1", "quoted field is not closed"}},
           {"not JSON",
            labelled("{\"label\": \"good\", \"text\": \"a\"}\n{bad}\n", {}, "bad.jsonl"),
            {"bad.jsonl:2:", "not JSON"}},
           {"a missing JSON key",
            labelled("{\"label\": \"good\"}\n", {}, "bad.jsonl"),
            {"bad.jsonl:1", "no key 'text'", "text_columns"}},
           {"a label with a tab",
            labelled("{\"label\": \"a\\tb\", \"text\": \"x\"}\n{\"label\": \"c\", \"text\": \"y\"}\n", {}, "bad.jsonl"),
            {"bad.jsonl", "tab or a line break"}},
           {"Latin-1", labelled(good + "bad\tna\xefve\n"), {"bad.tsv:3:", "UTF-8"}},
           {"no table", labelled(good, {}, "bad.dat"), {"bad.dat", "format"}},
       })
    rows.push_back({row.name, row.input.first, row.input.second, 1, row.says});
  check_rows(rows);
}

TEST_CASE("a learning rate that breaks the numbers ends the run, and what was saved stays") {
  const Workplace place;
  write_trained_samples(place);
  const auto saved = place.content("runs/lm/checkpoints");
  const Words command{"train", "--config", "lm.yaml", "--set", "train.steps=12"};
  Words broken = command;
  broken.push_back("train.lr=1e30");
  const std::vector<std::string> says{"not finite", "Lower train.lr", "the checkpoint of step 6 is intact"};
  check_refused(place, {"the first time", {}, broken, 1, says});
  check_refused(place, {"the second time", {}, broken, 1, says});
  const bool same = place.content("runs/lm/checkpoints") == saved;
  CHECK(same);
  CHECK(run(place, {"generate", "runs/lm", "-n", "3"}).code == 0);
  CHECK(run(place, command).code == 0);
}

}  // namespace
}  // namespace capstan::testing
