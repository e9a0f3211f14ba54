// ROUGE against the Python package rouge-score (tests/parity/make_rouge.py), and by hand.
#include "train/evaluation/rouge.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/io/file.hpp"
#include "tests/support/source_dir.hpp"

namespace capstan {
namespace {

void check_score(const RougeScore& score, const nlohmann::json& expected) {
  CHECK(score.precision == doctest::Approx(expected[0].get<double>()).epsilon(1e-12));
  CHECK(score.recall == doctest::Approx(expected[1].get<double>()).epsilon(1e-12));
  CHECK(score.f1 == doctest::Approx(expected[2].get<double>()).epsilon(1e-12));
}

TEST_CASE("ROUGE: the numbers of rouge-score on 200 pairs") {
  std::istringstream lines(read_file(source_path("tests/parity/fixtures/rouge.jsonl")));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto pair = nlohmann::json::parse(line);
    INFO(line);
    const RougeScores scores = rouge(pair["reference"].get<std::string>(), pair["prediction"].get<std::string>());
    check_score(scores.one, pair["rouge1"]);
    check_score(scores.two, pair["rouge2"]);
    check_score(scores.longest, pair["rougeL"]);
  }
  CHECK(count == 200);
}

TEST_CASE("ROUGE: by hand") {
  const RougeScores scores = rouge("The cat sat on the mat.", "the cat lay on THE mat mat");
  CHECK(scores.one.precision == doctest::Approx(5.0 / 7));  // the, cat, on, the, mat
  CHECK(scores.one.recall == doctest::Approx(5.0 / 6));
  CHECK(scores.two.recall == doctest::Approx(3.0 / 5));  // the cat, on the, the mat
  CHECK(scores.longest.recall == doctest::Approx(5.0 / 6));
  CHECK(rouge("", "text").one.f1 == 0);
  CHECK(rouge("text", "").longest.f1 == 0);
  CHECK(rouge("one", "one").two.f1 == 0);
  CHECK(rouge("one", "ONE!").longest.f1 == 1);
}

}  // namespace
}  // namespace capstan
