// `capstan data check`, the warnings of `capstan train`, and errors that name the key of a file.
#include <doctest/doctest.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/io/json.hpp"
#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

void write_reviews(const Workplace& place) {
  write_samples(place);
  std::string labels;  // a label, a text, and another label
  for (int i = 0; i < 300; ++i)
    labels += fmt::format("{}\ta review number {}\t{}\n", i % 3 == 0 ? "shop" : "film", i, i % 2 == 0 ? "good" : "bad");
  place.write("labels.tsv", labels);
  std::string rows = "id,sentiment,review\n";
  for (int i = 0; i < 300; ++i)
    rows +=
        std::to_string(i) + (i % 2 == 0 ? ",positive" : ",negative") + ",a review number " + std::to_string(i) + "\n";
  place.write("reviews.csv", rows);
}

const Words classifier =
    "--config classifier.yaml --set data.train=[reviews.csv] data.tokenizer=word train.steps=1 train.valid_every=0";

const Words wrong_column = "data.train=[labels.tsv] data.header=false data.label_column=1 data.text_columns=[3]";

Words command(const Words& words, const Words& more) { return words + classifier + more; }

TEST_CASE("train warns once, on standard error and in train.log, of texts that are none, and names the key to set") {
  const Workplace place;
  write_reviews(place);
  const std::string warning = "the training texts look like labels";
  for (const std::string progress : {"plain", "none"}) {
    CAPTURE(progress);
    const Outcome outcome =
        succeed(place, command("train", wrong_column + ("name=" + progress + " train.progress=" + progress)));
    check_says(outcome, {"warning: data: " + warning, "check data.text_columns (without it, the text is found)"});
    CHECK(contains(place.read("runs/" + progress + "/train.log"), warning));
  }
  const Outcome heeded = succeed(place, command({"train"}, "name=b data.header=true data.label_column=sentiment"));
  CHECK_FALSE(contains(heeded.err, "warning: data"));
}

TEST_CASE("data check prints tables and warnings, as text and as JSON, and writes nothing") {
  const Workplace place;
  write_reviews(place);
  const Outcome text = succeed(place, command("data check", wrong_column));
  check_contains(text.out,
                 {"How tables are read", "First rows", "Splits", "Examples of each class", "Files", "warning: "});
  CHECK(text.out.find("warning: ") < text.out.find("Splits"));
  CHECK_FALSE(fs::exists(place / "runs"));

  const Words arguments = command({"data", "check"}, "data.header=true data.label_column=sentiment") + "--format json";
  const nlohmann::json json = parse_json(succeed(place, arguments).out);
  CHECK(json.at("splits").at(0).at("split") == "train");
  CHECK(json.at("splits").at(0).at("examples") == 240);
  CHECK(json.at("splits").at(1).at("examples") == 60);
  CHECK(json.at("classes").at(0).at("train") == 120);
  CHECK(json.at("warnings").empty());
  CHECK(json.at("errors").empty());

  const Outcome language = succeed(place, "data check --config lm.yaml");
  check_contains(language.out, {"bytes per token", "<unk> %", "lines", "text/a.txt"});
}

TEST_CASE("data check shows the quote of each table, which is found") {
  const Workplace place;
  const auto rows = [&](const std::string& name, const std::string& row) {
    std::string all;
    for (int i = 0; i < 30; ++i) all += fmt::format(fmt::runtime(row), i % 2 == 0 ? "pos" : "neg", i);
    place.write(name, all);
  };
  rows("plain.csv", "{},\"film {}, and so on\"\n");
  rows("single.csv", "{},'film {}, and so on'\n");
  rows("labels.csv", "'{}',film {} and so on\n");
  rows("double.tsv", "{}\t\"film {} and so on\"\n");
  const auto check = [&](const std::string& file, const std::string& key) {
    return run(place, "data check --config classify --format json --set data.train=[" + file + "] " + key);
  };
  for (const auto& [file, quote] :
       {std::pair("plain.csv", "\""), {"single.csv", "'"}, {"labels.csv", "'"}, {"double.tsv", "none"}}) {
    CAPTURE(file);
    const nlohmann::json json = parse_json(check(file, "seed=1").out);
    CHECK(json.at("tables").at(0).at("quote") == quote);
    CHECK(json.at("columns").at(0).at("taken for") == "label");
    CHECK(json.at("columns").at(0).at("values") == "2 different values");
    CHECK(json.at("columns").at(1).at("taken for") == "text");
    CHECK(json.at("warnings").empty());
  }
  const Outcome wide = check("single.csv", "data.quote=none");
  CHECK(wide.code == 2);
  CHECK(contains(wide.err, "(or set data.quote=single for single ones)"));
}

TEST_CASE("data check ends with 1 for what would stop the training, after its tables") {
  const Workplace place;
  write_reviews(place);
  place.write("bad.csv", "positive,some words\nnegative,other words\nnegative\npositive,\n");
  const Outcome outcome = run(place, command({"data", "check"}, {"data.train=[bad.csv]"}));
  CHECK(outcome.code == 1);
  check_contains(outcome.out, {"Splits", "error: bad.csv:3: too few columns", "error: bad.csv:4: the text is empty"});
  CHECK(indecency(outcome) == "");
}

TEST_CASE_FIXTURE(Samples, "a missing file of the data is named with its key, and with its line in the configuration") {
  place.write("mine.yaml", "data:\n  test: [there/is/none.tsv]\n");
  for (const Words& start : {Words{"train"}, {"data", "check"}}) {
    check_refused(place, start[0], start + "--config classifier.yaml mine.yaml",
                  "mine.yaml:2:10: data.test.0: there/is/none.tsv: no such file or folder", 2);
    CHECK_FALSE(fs::exists(place / "runs"));
  }
  check_refused(place, "as an override", "train --config lm.yaml --set data.valid=[nothing.txt]",
                "--set data.valid=[nothing.txt]: ", 2);

  write_trained_samples(place);
  check_refused(place, "eval", "eval runs/classifier --split test --set data.test=[none.tsv]",
                "data.test: none.tsv: no such file or folder");
  check_refused(place, "a pattern", "train --config lm.yaml --set data.valid=[text/*.none]",
                "data.valid: text/*.none: no text file matches");
}

TEST_CASE_FIXTURE(Samples, "an argument that a command does not take comes with what was probably meant") {
  for (const Refusal& row : std::vector<Refusal>{
           {"a configuration without --config", "train lm.yaml", "lm.yaml ... --config lm.yaml", 2},
           {"data without --config", "train train.tsv", "--set data.train=[train.tsv] ... for example:", 2},
           {"the same of sweep", "sweep lm.yaml", "--config lm.yaml", 2},
           {"the same of config check", "config check lm.yaml", "--config lm.yaml", 2},
           {"the same of data check", "data check lm.yaml", "--config lm.yaml", 2},
           {"a value without --set", "train --config lm.yaml train.lr=1e-3",
            "train.lr=1e-3 is no file ... --set train.lr=1e-3", 2},
           {"a prompt without --prompt", "generate runs/lm Once", "Once ... --prompt", 2},
           {"a text to predict", "predict runs/c a.txt more", "more: unknown argument ... for example", 2},
           {"a text in place of a file",
            {"predict", "runs/classifier", "a fine day"},
            "a fine day: no such file ... echo TEXT | capstan predict runs/classifier",
            1,
            write_trained_samples},
       })
    check_refused(place, row);
}

TEST_CASE_FIXTURE(Samples, "data check shows what was understood: delimiter, header, columns, and three rows") {
  place.write("own.txt", "id:stars:review\n1:good:a fine, long day\n2:bad:sad\n3:good:well\n4:bad:no\n");
  Words words =
      "data check --config classifier.yaml --set data.train=[own.txt] data.delimiter=':' data.label_column=stars "
      "data.text_columns=[review] data.valid_fraction=0";
  const std::string text = succeed(place, words).out;
  check_contains(text, {"own.txt", "own.txt:2"});
  const nlohmann::json json = parse_json(succeed(place, words + "--format json").out);
  const nlohmann::json read = json.at("tables").at(0);
  CHECK(read.at("format") == "csv");
  CHECK(read.at("delimiter") == "':'");
  CHECK(read.at("header") == "yes");
  CHECK(read.at("columns") == "3: id, stars, review");
  CHECK(read.at("label") == "stars");
  CHECK(read.at("text") == "review");
  REQUIRE(json.at("first_rows").size() == 3);
  CHECK(json.at("first_rows").at(0).at("label") == "good");
  CHECK(json.at("first_rows").at(0).at("text") == "a fine, long day");
  CHECK(json.at("first_rows").at(0).at("row") == "own.txt:2");
}

TEST_CASE("a piped table whose text column has another name is pointed out, and read when it is named") {
  const SamplePlace place;
  place.write("named.csv", "text,label\n" + text_of(Words(10, "a fine day,good\nsad night,bad")));
  succeed(place, "train --config classifier.yaml --set data.train=[named.csv]");
  const std::string table = "review,stars\na fine day,5\n\"sad, long night\",1\n";
  CHECK(contains(succeed(place, "predict runs/classifier", table).err, "--text-column NAME"));
  const Outcome read = succeed(place, "predict runs/classifier --input csv --text-column review", table);
  CHECK(lines_of(read.out).size() == 3);  // with the names of the columns
}

TEST_CASE_FIXTURE(Trained, "compare puts the best run first, by the measure that the runs were judged by") {
  const auto write_run = [&](const std::string& name, const std::string& monitor, double loss, double accuracy) {
    place.write("runs/" + name + "/config.yaml", place.read("runs/classifier/config.yaml"));
    edit(place, "runs/" + name + "/config.yaml", "monitor: ", "monitor: " + monitor + " #");
    place.write(
        "runs/" + name + "/metrics.jsonl",
        fmt::format(R"({{"event":"valid","step":3,"loss":{0},"bits":{0},"best":true,"accuracy":{1},"seconds":1}})",
                    loss, accuracy) +
            "\n");
  };
  write_run("sure", "accuracy", 0.9, 0.8);
  write_run("careful", "accuracy", 0.4, 0.7);
  const auto first_of = [&](const Words& arguments) {
    const Outcome outcome = succeed(place, arguments);
    return std::make_pair(lines_of(outcome.out).at(3).substr(0, 12), outcome.err);
  };
  auto [first, said] = first_of({"compare", "runs/careful", "runs/sure"});
  CHECK(first == "runs/sure   ");
  CHECK(said == "");
  write_run("careful", "loss", 0.4, 0.7);
  std::tie(first, said) = first_of({"compare", "runs/sure", "runs/careful"});
  CHECK(first == "runs/careful");
  CHECK(contains(said, "the runs differ in train.monitor (1 loss, 1 accuracy): sorted by the validation loss"));
}

}  // namespace
}  // namespace capstan::testing
