// Runs beside each other: means over seeds, curves, and records of runs whose numbers went astray.
#include "run/summaries/run_table.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "core/base/error.hpp"
#include "core/strings/printable.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/texts.hpp"

using namespace capstan;

namespace {

RunRecord record(int64_t seed, double lr, double loss, double accuracy) {
  RunRecord run;
  run.folder = "runs/" + std::to_string(seed);
  run.config.seed = seed;
  run.config.train.lr = lr;
  run.train_loss = loss / 2;
  if (std::isfinite(loss)) run.best = ValidPoint{10, 1, loss, 0, {{"loss", loss}, {"accuracy", accuracy}}};
  return run;
}

TEST_CASE("runs that differ in their seed alone become one row: mean and deviation of the sample") {
  const Table table =
      seed_table({record(1, 1e-3, 1, 0.5), record(1, 2e-3, 4, 0.1), record(2, 1e-3, 3, 0.7), record(3, 1e-3, 2, 0.6)});
  REQUIRE(table.size() == 3);
  CHECK(table[0] == std::vector<std::string>{"lr", "runs", "valid loss", "accuracy"});
  CHECK(table[1] == std::vector<std::string>{"0.001", "3", "2.0000 ± 1.0000", "0.6000 ± 0.1000"});
  CHECK(table[2] == std::vector<std::string>{"0.002", "1", "4.0000", "0.1000"});
  CHECK(seed_table({record(1, 1e-3, 1, 0.5), record(2, 2e-3, 3, 0.7)}).empty());
  CHECK(seed_table({record(1, 1e-3, 1, 0.5)}).empty());
  CHECK(seed_table({record(1, 1e-3, 1, 0.5), record(1, 1e-3, 1, 0.5)}).empty());  // a copy
  RunRecord ruled = record(3, 2e-3, 4, 0.1);
  ruled.best->metrics["macro_f1"] = 0.25;
  const Table some = seed_table({record(1, 1e-3, 1, 0.5), record(2, 1e-3, 3, 0.7), ruled});
  REQUIRE(some.size() == 3);
  CHECK(some[1].back() == "-");
  CHECK(some[2].back() == "0.2500");
}

TEST_CASE("runs are seeds of each other only if nothing else differs, though it be a key that only one of them has") {
  RunRecord warm = record(2, 1e-3, 3, 0.7);
  warm.config.train.init_skip = {"a"};
  CHECK(seed_table({record(1, 1e-3, 1, 0.5), warm}).empty());
}

TEST_CASE("a comparison fits the terminal, without the columns that are the same in all runs") {
  RunRecord long_name = record(1, 1e-3, 1, 0.5);
  long_name.folder = "runs/" + std::string(100, 'x');
  long_name.seconds = 1000;
  for (const size_t width : {40u, 60u, 80u}) {
    std::ostringstream out;
    print_comparison({long_name, record(2, 2e-3, 3, 0.7)}, out, width);
    std::istringstream lines(out.str());
    std::string line, headings, common;
    while (std::getline(lines, line)) {
      CHECK(display_columns(line) <= width);
      if (line.rfind(common.empty() ? "the same" : "  ", 0) == 0) common += line;
      if (line.rfind("run ", 0) == 0) headings += line;
    }
    check_contains(headings, {"seed", "lr", "train loss", "valid loss", "accuracy", "time"});
    CHECK_FALSE(contains(headings, "step"));
    check_contains(common, {"the same in all: step 0, at step 10,", "tok/s 0", "RSS MB 0"});
  }
}

TEST_CASE("folds of a cross-validation become one row, too") {
  RunRecord first = record(1, 1e-3, 1, 0.5), second = record(1, 1e-3, 3, 0.7);
  LabelledSourceConfig data;
  data.train = {"train.tsv"};
  data.folds = 2;
  first.config.data = data;
  data.fold = 1;
  second.config.data = data;
  const Table table = seed_table({first, second});
  REQUIRE(table.size() == 2);
  CHECK(table[1] == std::vector<std::string>{"2", "2.0000 ± 1.4142", "0.6000 ± 0.1414"});
}

TEST_CASE("a run without validation brings all to the loss of training") {
  const Table table = seed_table({record(1, 1e-3, 1, 0.5), record(2, 1e-3, NAN, 0)});
  REQUIRE(table.size() == 2);
  CHECK(table[0] == std::vector<std::string>{"runs", "train loss"});
}

TEST_CASE("csv quotes what needs it, text is aligned by characters") {
  const Table table{{"a", "b,c"}, {"\"x\"", "1\n2"}, {"caf\xC3\xA9", "3"}};
  std::ostringstream csv, text;
  print_csv(table, csv);
  CHECK(csv.str() == "a,\"b,c\"\n\"\"\"x\"\"\",\"1\n2\"\ncaf\xC3\xA9,3\n");
  print_text({{"ab", "c"}, {"\xC3\xA9", "10 ± 1"}}, text);
  CHECK(text.str() == "ab       c\n\xC3\xA9   10 ± 1\n");
}

TEST_CASE("a record is read past numbers that are null and a last line that is half there") {
  const TemporaryFolder folder;
  std::ofstream(folder / "config.yaml") << "name: r\ndata: {type: text, train: [t]}\n"
                                           "model: {type: language-model, layers: [{mixer: attention}]}\n"
                                           "train: {steps: 9}\n";
  std::ofstream(folder / "metrics.jsonl")
      << R"({"event":"train","step":1,"epoch":1,"loss":2.5,"lr":0.1,"seconds":1,"tokens_per_second":10}
{"event":"train","step":2,"epoch":1,"loss":null,"lr":0.1,"seconds":2,"tokens_per_second":30,"peak_rss_bytes":7}
{"event":"valid","step":2,"loss":null,"accuracy":0,"best":false,"seconds":2}
{"event":"valid","step":3,"loss":1.5,"accuracy":0.5,"best":true,"seconds":3,"targets":40}
{"event":"valid","step":4,"loss":1.4,"accuracy":0.4,"best":false,"seconds":4}
{"step":4}
{"event":"train","step":5,"lo)";
  const RunRecord run = read_record(folder.folder());
  CHECK(run.step == 4);
  CHECK(run.train_loss == 2.5);
  CHECK(run.seconds == 2);
  CHECK(run.peak_rss_bytes == 7);
  REQUIRE(run.train.size() == 2);
  CHECK(std::isnan(run.train[1].loss));
  REQUIRE(run.best.has_value());
  CHECK(run.best->step == 3);  // as train.monitor judged it
  CHECK(run.best->targets == 40);
  CHECK_THROWS_WITH_AS(read_record(folder.folder() / "gone"), doctest::Contains("no such folder"), Error);
}

TEST_CASE("an accuracy is clearly better only when it is so by more than a standard error; other measures always") {
  const auto of = [](double accuracy, double loss, int64_t targets) {
    ValidPoint point;
    point.metrics["accuracy"] = accuracy;
    point.metrics["loss"] = loss;
    point.targets = targets;
    return point;
  };
  const ValidPoint given = of(0.8, 0.5, 400);  // a standard error of 0.02
  CHECK(clearly_better(of(0.821, 1, 400), given, metric_of("accuracy")));
  CHECK_FALSE(clearly_better(of(0.819, 0.1, 400), given, metric_of("accuracy")));
  CHECK_FALSE(clearly_better(given, given, metric_of("accuracy")));
  CHECK(clearly_better(of(0.8, 0.499, 400), given, metrics().front()));
  CHECK_FALSE(clearly_better(given, given, metrics().front()));
  CHECK(clearly_better(of(0.801, 1, 0), of(0.8, 1, 0), metric_of("accuracy")));  // not known of how many
  CHECK(clearly_better(given, of(0.8, NAN, 400), metrics().front()));
  CHECK_FALSE(clearly_better(of(0.8, NAN, 400), given, metrics().front()));
}

}  // namespace
