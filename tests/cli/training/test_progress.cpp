// What a run says while it works and at its end: little, in the words of its data, and what to do next.
#include <doctest/doctest.h>

#include "tests/cli/support/samples.hpp"
#include "tests/cli/support/terminal.hpp"

namespace capstan::testing {
namespace {

const std::string linear_words_yaml =
    "{name: linear, threads: 2, data: {type: labelled, train: [train.tsv], valid_fraction: 0, max_length: 0, "
    "tokenizer: {type: byte}}, model: {type: linear-classifier, words: [1]}, train: {epochs: 1, monitor: accuracy}}\n";

/// The command after `before` in the last line that begins with "info: next: ", without what follows the next comma.
Words next_command(const std::string& log, const std::string& before) {
  const size_t line = log.rfind("info: next: "), begin = log.find(before, line) + before.size();
  REQUIRE(line != std::string::npos);
  return log.substr(begin, log.find_first_of(",\n", begin) - begin);
}

}  // namespace

TEST_CASE_FIXTURE(Samples, "in a file, a run of any length has at most 30 lines, and train.progress: plain has all") {
  const auto train = [&](const std::string& name, const std::string& progress) {
    return succeed(place, "train --config lm.yaml --set train.steps=300 train.valid_every=10 train.save_every=0 name=" +
                              name + " train.progress=" + progress);
  };
  const Outcome outcome = train("few", "auto");
  CHECK(lines_of(outcome.err).size() <= 30);
  CHECK(lines_of(place.read("runs/few/train.log")).size() <= 30);
  check_contains(outcome.err, {"Step 300/300", "Valid : Step 300"});
  CHECK(lines_of(train("all", "plain").err).size() > 300);
}

TEST_CASE_FIXTURE(Samples, "the log of a linear classifier speaks of texts, classes and accuracy") {
  place.write("linear.yaml", linear_words_yaml);
  const Outcome outcome = succeed(place, "train --config linear.yaml");
  check_contains(outcome.err, {"texts", "classes", "Accuracy", "finished: the weights are solved for"});
  for (const char* const word : {"frozen", "bpt", "tep 1", "FLOP", "tok/s", "okenizer", "targets"})
    CHECK_MESSAGE(!contains(outcome.err, word), word, " in ", outcome.err);
  const TerminalOutcome terminal =
      run_on_terminal(place, {"train", "--config", "linear.yaml", "--set", "name=again"}, 80);
  check_contains(terminal.written, {"reading train.tsv", "% tokenising", "% cross-validation"});
  check_contains(terminal.written, {"% solving with all texts", "saving"});
  for (const std::string& line : terminal.screen) CHECK_FALSE(contains(line, "solving with all"));
  const TerminalOutcome eval = run_on_terminal(place, {"eval", "runs/again", "--split", "train"}, 80);
  CHECK(contains(eval.written, "% evaluating"));
  for (const std::string& line : eval.screen) CHECK_FALSE(contains(line, "evaluating"));
}

TEST_CASE_FIXTURE(Samples, "a run ends with where it is, its size, and two commands that work") {
  place.write("linear.yaml", linear_words_yaml);
  place.write("FILE", "a fine day 3\n");
  for (const char* const config : {"lm.yaml", "classifier.yaml", "linear.yaml"}) {
    CAPTURE(config);
    const std::string log = succeed(place, {"train", "--config", config, "--set", "train.progress=auto"}).err;
    CHECK(contains(log, " on disk"));
    for (const char* const before : {"next: capstan ", ", or capstan "}) succeed(place, next_command(log, before));
  }
  const Outcome search = succeed(place, {"autotune", "--config", "linear.yaml", "--minutes", "5", "--set",
                                         "name=search", "sweep.model.words=[[1], [1, 2]]"});
  succeed(place, next_command(search.err, "next: capstan "));
  const Outcome sweep =
      succeed(place, {"sweep", "--config", "linear.yaml", "--set", "name=sweep", "sweep.model.words=[[1], [1, 2]]"});
  for (const char* const before : {"next: capstan ", ", or capstan "}) succeed(place, next_command(sweep.err, before));
  const Outcome blanks = succeed(place, {"train", "--config", "linear.yaml", "--set", "folder=my runs"});
  CHECK(
      contains(blanks.err, "next: capstan predict 'my runs/linear' FILE, or capstan report 'my runs/linear' --output"));
  const Outcome predict = succeed(place, "predict runs/linear train.tsv --output out.tsv");
  CHECK(contains(predict.err, " rows with their predictions\n"));
  CHECK(contains(succeed(place, "predict runs/linear train.tsv --output out.tsv").err,
                 "rows with their predictions; replaced what was there"));
}

}  // namespace capstan::testing
