// `capstan compare A B --data`: the figures of eval, the texts on which two models differ, and labels that they do not
// know.
#include <doctest/doctest.h>

#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

/// Rows of a table printed as CSV, without its header.
std::vector<std::vector<std::string>> rows_of(const std::string& csv) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : lines_of(csv)) rows.push_back(cells(line, ','));
  rows.erase(rows.begin());
  return rows;
}

double rounded_number(const std::string& text) { return std::stod(text); }

}  // namespace

TEST_CASE("compare --data: both columns have eval's figures; a label that neither knows is wrong") {
  const Workplace place;
  std::string train, test;
  for (int i = 0; i < 60; ++i) {
    const std::string number = std::to_string(i % 7);
    train += "good\ta fine day " + number + "\nbad\ta sad night " + number + "\n";
    test +=
        std::string(i % 3 == 0 ? "good" : "bad") + "\ta " + (i % 2 == 0 ? "fine" : "sad") + " evening " + number + "\n";
  }
  place.write("train.tsv", train);
  place.write("test.tsv", test);
  succeed(place, classify_words("words", {"model.characters=[]"}));
  succeed(place, classify_words("other", {"model.words=[]", "model.characters=[1]"}));
  const auto compare = [&](const std::string& data) {
    return rows_of(succeed(place, {"compare", "runs/words", "runs/other", "--data", data, "--output", "differing.tsv",
                                   "--format", "csv"})
                       .out);
  };
  const auto rows = compare("test.tsv");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0][0] == "accuracy");
  CHECK(rows[1][0] == "macro_f1");
  for (size_t run = 0; run < 2; ++run) {
    const std::string text = succeed(place, {"eval", run == 0 ? "runs/words" : "runs/other", "--split", "test"}).out;
    for (const auto& row : rows)
      CHECK(rounded_number(row[run + 1]) == doctest::Approx(number_of(text, row[0])).epsilon(1e-3));
  }
  CHECK(lines_of(place.read("differing.tsv")).front() == "label\truns/words\truns/other\tplace\ttext");

  place.write("more.tsv", test + "neither\ta fine thing\n");
  CHECK(rounded_number(compare("more.tsv")[0][1]) ==
        doctest::Approx(rounded_number(rows[0][1]) * 60 / 61).epsilon(1e-3));
  const auto same = rows_of(succeed(place, "compare runs/words runs/words --data test.tsv --format csv").out);
  CHECK(same[0][5] == "1");
  CHECK(rounded_number(same[0][3]) == 0);
}

TEST_CASE("compare --data of language models: bits per byte of both; other models and numbers of runs are refused") {
  const TrainedPlace place;
  const auto rows = rows_of(succeed(place, "compare runs/lm runs/lm --data text/b.txt --format csv").out);
  CHECK(rows.front()[0] == "bits_per_byte");
  CHECK(rows.front()[1] == rows.front()[2]);
  check_refused(place, "two kinds", "compare runs/lm runs/classifier --data text/b.txt",
                "two classifiers or two language models", 1);
  check_refused(place, "one run", "compare runs/lm --data text/b.txt", "--data: two runs are compared ... 1 are given",
                2);
  check_refused(place, "no data", "compare runs/lm runs/lm --output a.tsv", "--output: it needs --data", 2);
}

}  // namespace capstan::testing
