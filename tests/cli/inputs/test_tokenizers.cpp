// Tokenizers that are learnt, words that they do not know, and data with errors in them, as a user meets them.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

Words train(const std::string& config, const std::string& tokenizer, const Words& more = {}) {
  return train_words(config, {"name=new", "data.tokenizer=" + tokenizer}) + more;
}

TEST_CASE("a run with sentencepiece needs its folder only, goes on, and counts bits over the bytes of the text") {
  const SamplePlace place;
  const std::string valid = "the caf\xc3\xa9 of rope\n  pulls slow, \xe6\x97\xa5\xe6\x9c\xac!\n";
  place.write("valid.txt", valid);
  const std::string tokenizer = "{type: sentencepiece, vocabulary_size: 300, model: pieces.model}";
  const Outcome begun = succeed(place, train("lm.yaml", tokenizer, "data.valid=[valid.txt] train.steps=4"));
  CHECK(contains(begun.err, "tokenizer: sentencepiece, 300 tokens"));
  for (const char* noise : {"trainer_interface", "LOG(", "sentencepiece_trainer"})
    CHECK_FALSE(contains(begun.err, noise));
  CHECK(fs::remove(place / "pieces.model"));  // trained anew: the same
  succeed(place, train("lm.yaml", tokenizer, "data.valid=[valid.txt] train.steps=6"));
  CHECK(fs::remove(place / "pieces.model"));

  const auto report = eval_json(place, "runs/new");
  const double bits = report.at("loss").get<double>() * report.at("targets").get<double>() / std::log(2.0);
  CHECK(report.at("bits_per_byte").get<double>() ==
        doctest::Approx(bits / static_cast<double>(valid.size())).epsilon(1e-3));

  fs::remove_all(place / "text");
  CHECK_FALSE(fs::exists(place / "pieces.model"));
  const Words generate{"generate", "runs/new", "--prompt", "the rope", "--tokens", "30"};
  const std::string written = succeed(place, generate).out;
  CHECK(written.rfind("the rope", 0) == 0);
  CHECK(written == succeed(place, generate).out);
  succeed(place, "generate runs/new --tokens 30 --temperature 2");
}

TEST_CASE_FIXTURE(Samples, "predict lowers letters as training did") {
  succeed(place, train("classifier.yaml", "{type: word, lower_case: true}"));
  const std::vector<std::string> rows =
      lines_of(succeed(place, "predict runs/new", "the cafe of rope\nTHE Cafe OF rope\n").out);
  REQUIRE(rows.size() == 3);
  CHECK(rows[1] == rows[2]);
}

TEST_CASE_FIXTURE(Samples, "rows that cannot be used stop a run, or are left out and told once") {
  place.write("train.tsv", place.read("train.tsv") + "lonely\n\xff\tbroken\n");
  check_refused(
      place, "two bad rows", train("classifier.yaml", "char"),
      "train.tsv: ... too few columns: found 1 ... byte 0xff ... 2 rows cannot be used ... data.on_error: skip");
  const Outcome outcome = succeed(place, train("classifier.yaml", "char", {"data.on_error=skip"}));
  CHECK(count_of(outcome.err, "2 rows left out (on_error: skip), the first: ") == 1);
  CHECK(count_of(succeed(place, "eval runs/new").err, "2 rows left out") == 1);
}

TEST_CASE_FIXTURE(Samples, "a vocabulary that the text does not give is refused with the largest one that it gives") {
  check_refused(place, "too many pieces", train("lm.yaml", "{type: sentencepiece, vocabulary_size: 20000}"),
                "data.tokenizer.vocabulary_size ... does not yield 20000 pieces ...  or less, or train on more text",
                2);
}

}  // namespace
}  // namespace capstan::testing
