// Wrong configurations, command lines and data: exit code 1 or 2, and a message that names the place and the remedy.
#include <doctest/doctest.h>

#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

/// `capstan train --config lm.yaml --set name=new ...`
Words train(const Words& overrides, const std::string& config = "lm.yaml") {
  return train_words(config, "name=new") + overrides;
}

/// A file to be written before.
Preparation file(const std::string& name, const std::string& text) {
  return [=](const Workplace& place) { place.write(name, text); };
}

/// Every row in its own folder: nothing a run makes may be there afterwards.
void check_rows(const std::vector<Refusal>& rows) {
  for (const Refusal& row : rows) {
    const SamplePlace place;
    check_refused(place, row);
    INFO(row.name);
    CHECK_FALSE(fs::exists(place / "runs/new/checkpoints/last"));
  }
}

TEST_CASE("a wrong configuration is refused") {
  const auto config = [](const std::string& text) { return file("mine.yaml", text); };
  check_rows({
      {"misspelt key", "train --config lm.yaml mine.yaml", "mine.yaml:2:3 ... btach_size ... did you mean batch_size?",
       2, config("train:\n  btach_size: 3\n")},
      {"two errors at once", "train --config lm.yaml mine.yaml", "train.lr ... train.steps", 2,
       config("train: {lr: fast, steps: many}\n")},
      {"missing file", "train --config absent.yaml", "absent.yaml ... no such file", 2},
      {"more tokens than positions", train("data.sequence_length=64"),
       "data.sequence_length ... 64 tokens ... 32 positions ... model.max_length", 2},
      {"the same for labelled texts", train("data.max_length=17", "classifier.yaml"),
       "data.max_length ... 17 tokens ... 16 positions ... model.max_length", 2},
      {"no longest length where the model has one", train("data.max_length=0", "classifier.yaml"),
       "data.max_length ... must be limited ... 16 positions", 2},
      {"a classifier on text without labels", "train --config classifier.yaml mine.yaml",
       "data.type ... text-classifier ... labelled", 2,
       config("data: {type: text, train: [text], sequence_length: 16}\n")},
      {"an infinite learning rate", train("train.lr=inf"), "--set train.lr=inf ... greater than 0", 2},
      {"no end", train("train.steps=0"), "train.steps ... train.epochs ... never end", 2},
  });
}

TEST_CASE("a wrong command line is refused") {
  const std::vector<Refusal> rows = {
      {"--set of a misspelt key", train("model.widht=3"), "--set model.widht=3 ... did you mean width?"},
      {"--set alone", "train --config lm.yaml --set", "--set ... KEY=VALUE"},
      {"no --config", "train", "--config is required ... capstan train --help"},
      {"no --config to check", "config check", "--config"},
      {"no command", {}, "train ... predict ... generate ... Begin with ... Exit codes"},
      {"no command of config", "config", "print ... check ... table"},
      {"a command that does not exist", "frobnicate", "frobnicate: unknown command ... capstan --help"},
      {"a misspelt command", "trian --config lm.yaml", "trian ... did you mean train?"},
      {"a misspelt command of config", "config chekc", "chekc ... did you mean check?"},
      {"an unknown option", "train --config lm.yaml --frob", "--frob ... capstan train --help"},
      {"a misspelt option", "generate runs/lm --temprature 1",
       "--temprature: unknown option, did you mean --temperature? ... for example: capstan generate runs/ ... "
       "--temperature 0"},
      {"a misspelt option with its value", "predict runs/a --topk=5", "did you mean --top-k? ... --top-k 5"},
      {"a misspelt option whose value is taken for a run", "eval --splt test runs/a",
       "--splt: unknown option, did you mean --split? ... for example: capstan eval runs/ ... --split test"},
      {"a key as an option", "train --train.lr 3", "--set train.lr=VALUE"},
      {"help for a misspelt command", "help trian", "did you mean train? ... for example: capstan train"},
      {"--help of a misspelt command", "trian --help", "did you mean train?"},
      {"a misspelt recipe", "train --config clasify", "clasify ... did you mean classify?"},
      {"an unknown option before all", "--frob train", "--frob ... --help"},
      {"too much", "eval runs/a runs/b", "runs/b ... capstan eval --help"},
      {"no run", "generate", "RUN is required ... capstan generate --help"},
      {"nothing to inspect", "inspect", "RUN|FILE is required"},
      {"a misspelt help", "hlep", "hlep: unknown command, did you mean help?"},
      {"a file to evaluate", "eval runs/a train.tsv", "train.tsv: unknown argument ... for example: capstan eval"},
      {"data for a configuration", "config check --config train.tsv",
       "train.tsv is not a YAML configuration ... --set data.train=[train.tsv]"},
      {"a recipe of a folder", "train --config imdb-bytes", "did you mean compare/imdb-bytes?"},
      {"no recipe", "train --config nothing-like-it", "no such file and no such recipe; the recipes are the files of"},
      {"not a number", "generate runs/lm -n many", "--tokens ... many"},
      {"fewer than no tokens", "generate runs/lm -n -5", "--tokens ... from -1 to 1000000000000 ... -5"},
      {"a share above 1", "generate runs/lm --top-p 1.5", "--top-p ... from 0 to 1 ... 1.5"},
      {"a negative temperature", "generate runs/lm --temperature -1", "--temperature ... at least 0"},
      {"no temperature", "generate runs/lm --temperature nan", "--temperature ... at least 0 ... nan"},
      {"a negative seed", "generate runs/lm --seed -1", "--seed ... at least 0 ... -1"},
      {"no penalty", "generate runs/lm --repetition-penalty 0", "--repetition-penalty ... greater than 0"},
      {"weights of no kind", "generate runs/lm --weights fp8", "--weights: fp8 not in {float32,bf16,int8}"},
      {"a batch of none", "predict runs/classifier --batch-size 0", "--batch-size ... from 1 to 65536"},
      {"a negative length", "inspect lm.yaml --length -3", "--length ... from 0 to 16777216"},
  };
  check_rows(with_code(2, rows));
}

TEST_CASE("data that cannot be learnt from are refused") {
  const std::string binary("\177ELF\2\0\0\xd0\xff", 9);
  check_rows({
      {"missing file", train("data.train=absent.txt"),
       "--set data.train=absent.txt: data.train.0 ... no such file or folder ... check the path ... or set "
       "data.train=[FILE]",
       2},
      {"include that lets nothing through", train("data.include=['*.cpp']"), "text ... include"},
      {"a program", train("data.train=a.bin"), "a.bin: is a program; give a file of text", 1, file("a.bin", binary)},
      {"too little text", train("data.train=a.txt"), "training text ... sequence_length ... add text", 1,
       file("a.txt", "ab")},
  });
}

TEST_CASE("labelled texts that are wrong are refused") {
  check_rows({
      {"spaces for tabs", train("data.train=bad.tsv", "classifier.yaml"), "bad.tsv:1 ... too few columns ... tabs", 1,
       file("bad.tsv", "good a day\nbad a night\n")},
      {"unknown label", train("data.train=bad.tsv data.classes=[good,bad]", "classifier.yaml"),
       "bad.tsv:3 ... goood ... did you mean 'good'?", 1, file("bad.tsv", "good\ta day\nbad\ta night\ngoood\ta day\n")},
      {"a label with a tab", train("data.train=bad.jsonl", "classifier.yaml"), "bad.jsonl ... tab or a line break", 1,
       file("bad.jsonl", "{\"label\": \"a\\tb\", \"text\": \"x\"}\n{\"label\": \"c\", \"text\": \"y\"}\n")},
  });
}

TEST_CASE_FIXTURE(Trained, "a learning rate that breaks the numbers ends the run, and what was saved stays") {
  const auto saved = place.content("runs/lm/checkpoints");
  const Words command = "train --config lm.yaml --set train.steps=12";
  for (const char* const name : {"the first time", "the second time"})
    check_refused(place, name, command + "train.lr=1e12",
                  "not finite ... Lower train.lr ... the checkpoint of step 6 is intact");
  CHECK((place.content("runs/lm/checkpoints") == saved));
  CHECK(run(place, "generate runs/lm -n 3").code == 0);
  CHECK(run(place, command).code == 0);
}

}  // namespace
}  // namespace capstan::testing
