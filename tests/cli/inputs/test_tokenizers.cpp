// Tokenizers that are learnt, words that they do not know, and data with errors in them, as a user meets them.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/io/json.hpp"
#include "tests/cli/support/samples.hpp"
#include "tests/cli/support/warm_runs.hpp"

namespace capstan::testing {
namespace {

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

Words train(const std::string& config, const std::string& tokenizer, const Words& more = {}) {
  return Words{"train", "--config", config, "--set", "name=new", "data.tokenizer=" + tokenizer} + more;
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
  CHECK(std::filesystem::remove(place / "pieces.model"));  // trained anew: the same
  succeed(place, train("lm.yaml", tokenizer, "data.valid=[valid.txt] train.steps=6"));
  CHECK(std::filesystem::remove(place / "pieces.model"));

  const auto report = parse_json(succeed(place, "eval runs/new --format json").out);
  const double bits = report.at("loss").get<double>() * report.at("targets").get<double>() / std::log(2.0);
  CHECK(report.at("bits_per_byte").get<double>() ==
        doctest::Approx(bits / static_cast<double>(valid.size())).epsilon(1e-3));

  std::filesystem::remove_all(place / "text");
  CHECK_FALSE(std::filesystem::exists(place / "pieces.model"));
  const Words generate{"generate", "runs/new", "--prompt", "the rope", "--tokens", "30"};
  const std::string written = succeed(place, generate).out;
  CHECK(written.rfind("the rope", 0) == 0);
  CHECK(written == succeed(place, generate).out);
  succeed(place, "generate runs/new --tokens 30 --temperature 2");
}

TEST_CASE("predict lowers letters as training did") {
  const SamplePlace place;
  succeed(place, train("classifier.yaml", "{type: word, lower_case: true}"));
  const std::vector<std::string> rows =
      lines_of(succeed(place, "predict runs/new", "the cafe of rope\nTHE Cafe OF rope\n").out);
  REQUIRE(rows.size() == 3);
  CHECK(rows[1] == rows[2]);
}

TEST_CASE("rows that cannot be used stop a run, or are left out and told once") {
  const SamplePlace place;
  place.write("train.tsv", place.read("train.tsv") + "lonely\n\xff\tbroken\n");
  check_refused(
      place, "two bad rows", train("classifier.yaml", "char"),
      "train.tsv: ... too few columns: found 1 ... byte 0xff ... 2 rows cannot be used ... data.on_error: skip");
  const Outcome outcome = succeed(place, train("classifier.yaml", "char", {"data.on_error=skip"}));
  CHECK(count_of(outcome.err, "2 rows left out (on_error: skip), the first: ") == 1);
  CHECK(count_of(succeed(place, "eval runs/new").err, "2 rows left out") == 1);
}

TEST_CASE("a vocabulary that the text does not give is refused with the largest one that it gives") {
  const SamplePlace place;
  check_refused(place, "too many pieces", train("lm.yaml", "{type: sentencepiece, vocabulary_size: 20000}"),
                "data.tokenizer.vocabulary_size ... does not yield 20000 pieces ...  or less, or train on more text",
                2);
}

TEST_CASE(
    "n-grams of characters tell classes apart by words that training has not seen; eval, predict and slim agree") {
  const SamplePlace place;
  const auto word = [](int i, const std::string& end) {
    return std::string{static_cast<char>('a' + i % 26), static_cast<char>('a' + i / 26), "qxz"[i % 3]} + end;
  };
  std::string rows, held, texts;
  for (int i = 0; i < 120; ++i) {
    const bool noun = i % 2 == 0;
    const std::string text = "the " + word(i, noun ? "ung\xc3\xa9" : "lich") + (i % 3 == 0 ? "\n" : " day\n");
    (i < 80 ? rows : held) += (noun ? "noun\t" : "other\t") + text;
    if (i >= 80) texts += text;
  }
  place.write("words.tsv", rows);
  place.write("held.tsv", held);
  const Words common{"model.layers=[]",
                     "model.ngrams.orders=[1]",
                     "model.ngrams.buckets=5000",
                     "data.tokenizer={type: word, min_count: 2}",
                     "data.train=[words.tsv]",
                     "data.valid=[held.tsv]",
                     "train.steps=60",
                     "train.lr=0.01",
                     "train.valid_every=0"};
  const auto trained = [&](const std::string& name, const Words& more) {
    return succeed(place, Words{"train", "--config", "classifier.yaml", "--set", "name=" + name} + common + more);
  };
  trained("tokens", {});
  CHECK(number_of(succeed(place, "eval runs/tokens").out, "accuracy") < 0.8);  // all these words are unknown
  const Words characters{"model.ngrams.characters=[2, 3, 4]", "model.ngrams.unicode=true"};
  trained("characters", characters);
  const std::string evaluated = succeed(place, "eval runs/characters").out;
  CHECK(number_of(evaluated, "accuracy") == 1);
  const std::string alone = succeed(place, "predict runs/characters --batch-size 1", texts).out;
  const std::vector<std::string> lines = lines_of(alone);
  REQUIRE(lines.size() == 41);
  double loss = 0;
  for (size_t i = 0; i < 40; ++i) {
    CHECK(cells(lines[i + 1])[0] == (i % 2 == 0 ? "noun" : "other"));
    loss -= std::log(std::stod(cells(lines[i + 1])[i % 2 == 0 ? 1 : 2])) / 40;
  }
  CHECK(std::abs(loss - number_of(evaluated, "loss")) < 1e-3);
  CHECK(succeed(place, "predict runs/characters", texts).out == alone);
  succeed(place, "slim runs/characters --output runs/slim");
  CHECK(number_of(succeed(place, "eval runs/slim").out, "accuracy") == 1);
  check_refused(place, "export", "export runs/characters --format huggingface --output out",
                "model.ngrams.characters ... serve");
  check_refused(place, "explain", "predict runs/characters --explain", "only of a linear-classifier", 1, texts);
  // The table goes on where n-grams are the same: other tokens matter only to n-grams of tokens.
  const Words start = characters + Words{"train.init_from=runs/characters", "train.steps=1"};
  check_says(trained("same", start), {"loaded    ngrams.table"});
  check_says(trained("longer", start + Words{"model.ngrams.characters=[2, 3]"}),
             {"fresh     ngrams.table", "characters were [2, 3, 4], are [2, 3]"});
  check_says(trained("bytes", start + Words{"model.ngrams.unicode=false"}), {"unicode was true, is false"});
}

}  // namespace
}  // namespace capstan::testing
