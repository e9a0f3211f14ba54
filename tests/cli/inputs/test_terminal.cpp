// What reaches a terminal: a bar that fits, no control characters from files, and an error when nothing can be written.
#include "tests/cli/support/terminal.hpp"

#include <doctest/doctest.h>

#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

/// The title of the window, a colour, what is after a C1 control, right to left.
const std::string hostile =
    "\033]0;owned\007\033[35m\xc2\x9b"
    "2J\xe2\x80\xae";

std::string escape_free(const std::string& written) {
  for (const char* const bad : {"\033]", "\033[35m", "\007", "\xc2\x9b", "\xe2\x80\xae"})
    if (contains(written, bad)) return bad;
  return "";
}

TEST_CASE("a screen is what a terminal shows") {
  CHECK(screen_of("ab\r\033[Kc\nlong line\r\nx", 5) == Words{"c", "long", "line", "x"});
}

TEST_CASE("the bar fits the terminal, leaves nothing behind, and ends at 100 %") {
  for (const int columns : {40, 80, 110, 200}) {
    CAPTURE(columns);
    const SamplePlace place;
    const Words train =
        "train --config lm.yaml --set train.progress=auto train.steps=400 train.valid_every=150 train.save_every=100 "
        "model.width=64 train.batch_size=16";
    const TerminalOutcome outcome = run_on_terminal(place, train, columns);
    REQUIRE(outcome.code == 0);
    size_t drawn = 0, left = 0;
    std::string last;
    for (size_t at = outcome.written.find("\033[K["); at != std::string::npos;
         at = outcome.written.find("\033[K[", at + 1)) {
      const std::string line = outcome.written.substr(at + 3, outcome.written.find_first_of("\r\n", at) - at - 3);
      if (!contains(line, "% Step")) continue;  // a line of the log
      last = line;
      ++drawn;
    }
    for (const std::string& line : outcome.screen)
      if (contains(line, "[=") || contains(line, "tok/s")) ++left;
    CHECK(drawn > 2);
    CHECK(left == 0);
    CHECK(contains(last, "100%"));
    if (columns >= 80) CHECK((contains(last, "ETA 0s") && contains(last, "Loss ")));  // others are left out first
    CHECK(last.size() < static_cast<size_t>(columns));
  }
}

TEST_CASE_FIXTURE(Samples, "what files hold does not command the terminal, in logs, errors and tables") {
  std::string rows;
  for (int i = 0; i < 20; ++i) rows += hostile + "\ta fine day " + std::to_string(i) + "\nbad\tsad night\n";
  place.write("train.tsv", rows + "once" + hostile + "\tonly\n");
  place.write("lines.txt", "a fine day 3\n");
  for (const auto& [command, shown] : std::vector<std::pair<Words, std::string>>{
           {"train --config classifier.yaml", "\\x1b]0;owned"},  // the class that is seen once
           {"eval runs/classifier", "\\x1b[35m\\u009b2J\\u202e"},
           {"predict runs/classifier lines.txt", "\\x1b[35m"}}) {
    const TerminalOutcome outcome = run_on_terminal(place, command, 200);
    REQUIRE(outcome.code == 0);
    CHECK(escape_free(outcome.written) == "");
    CHECK(contains(outcome.written, shown));
  }
  CHECK(escape_free(place.read("runs/classifier/train.log")) == "");
  // In a pipe, predict writes the labels as they are: another program reads them.
  CHECK(contains(succeed(place, "predict runs/classifier lines.txt").out, hostile));

  for (const Words& arguments :
       {Words{"train", hostile},
        {"train", "--config", hostile},
        {hostile},
        {"eval", hostile},
        {"train", "--config", "classifier.yaml", "--set", hostile + "=1"},
        {"inspect", hostile + ".safetensors"},
        {"data", "check", "--config", "classifier.yaml"},
        {"train", "--config", "classifier.yaml", "--set", "data.train=[\"" + hostile.substr(0, 3) + "x\"]"}}) {
    const TerminalOutcome outcome = run_on_terminal(place, arguments, 200);
    INFO(outcome.written);
    CHECK(escape_free(outcome.written) == "");
  }
}

TEST_CASE(
    "of many classes a terminal shows the best three and the commonest confusions; a pipe has all probabilities") {
  const SamplePlace place;
  std::string rows;
  for (int i = 0; i < 60; ++i) rows += "class-" + std::to_string(i % 12) + "\ta text " + std::to_string(i) + "\n";
  place.write("train.tsv", rows);
  succeed(place, "train --config classifier.yaml --set data.valid_fraction=0 data.valid=[train.tsv]");
  place.write("lines.txt", "a text 3\n");
  const std::vector<std::string> shown =
      run_on_terminal(place, {"predict", "runs/classifier", "lines.txt"}, 200).screen;
  REQUIRE(shown.size() >= 2);
  CHECK(count_of(shown[0], "predicted") == 3);
  CHECK(count_of(shown[1], "class-") == 3);
  CHECK(count_of(shown[1], "0.") == 3);
  const std::vector<std::string> piped = lines_of(succeed(place, "predict runs/classifier lines.txt").out);
  CHECK(count_of(piped[0], "class-") == 12);
  CHECK(count_of(piped[1], "0.") == 12);

  const std::string eval = succeed(place, "eval runs/classifier").out;
  CHECK_FALSE(contains(eval, "rows are true classes"));
  check_contains(eval, {"commonest confusions\n", " of 5  class-"});
}

TEST_CASE("help and version on a full standard output are errors") {
  const Workplace place;
  for (const char* const arguments : {"--help", "--version", "train --help", "data check --help"}) {
    CAPTURE(arguments);
    const Outcome outcome = run_shell(place, std::string("\"$capstan\" ") + arguments + " > /dev/full");
    CHECK(outcome.code == 1);
    CHECK(contains(outcome.err, "cannot write to standard output"));
  }
}

}  // namespace
}  // namespace capstan::testing
